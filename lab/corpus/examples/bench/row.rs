//! One figure of the benchmark table.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// A figure beside its peer's.
#[derive(Debug, Deserialize, Serialize)]
pub struct Row {
    pub name: String,
    /// Unit of both figures.
    pub unit: Cow<'static, str>,
    pub ours: f64,
    /// The peer's, a median of the same run; absent where it could not be had.
    pub peer: Option<f64>,
    /// Who the peer is.
    pub peer_name: String,
    /// How many times better we are (or the share of a limit that we reach).
    pub ratio: Option<f64>,
    /// Conditions, aims and reasons.
    pub note: String,
}

impl Row {
    pub fn time(name: &str, ours_seconds: f64, peer_seconds: Option<f64>, peer_name: &str, note: &str) -> Self {
        Self {
            name: name.to_string(),
            unit: "ms".into(),
            ours: ours_seconds * 1e3,
            peer: peer_seconds.map(|seconds| seconds * 1e3),
            peer_name: peer_name.to_string(),
            ratio: peer_seconds.map(|peer| peer / ours_seconds),
            note: note.to_string(),
        }
    }

    pub fn rate(name: &str, unit: &'static str, ours: f64, peer: Option<f64>, peer_name: &str, note: &str) -> Self {
        let ratio = peer.map(|peer| ours / peer);
        Self {
            name: name.to_string(),
            unit: unit.into(),
            ours,
            peer,
            peer_name: peer_name.to_string(),
            ratio,
            note: note.to_string(),
        }
    }
}

/// The rows as a JSON array.
pub fn json(rows: &[Row]) -> String {
    serde_json::to_string_pretty(rows).unwrap_or_else(|error| format!("{{\"error\": \"{error}\"}}"))
}

/// The rows for people.
pub fn text(rows: &[Row]) -> String {
    let shown = |value: Option<f64>| value.map_or("-".to_string(), |value| format!("{value:.2}"));
    let mut text = format!("{:58} {:>12} {:>12} {:8} {:>8}  peer; note\n", "what", "ours", "peer", "unit", "ratio");
    for row in rows {
        text.push_str(&format!(
            "{:58} {:>12.2} {:>12} {:8} {:>8}  {}; {}\n",
            row.name,
            row.ours,
            shown(row.peer),
            row.unit,
            shown(row.ratio),
            row.peer_name,
            row.note
        ));
    }
    text
}
