//! The small charts of a card: how large errors are, and where along each dim.

use std::fmt::Write;

use gpuemu_model::picture::{ElementError, ErrorHistogram, Profile};

use super::level::Level;
use crate::markup::{Markup, Picture};

/// Pixels of a histogram's bars, all together.
const BARS: (f64, f64) = (360.0, 96.0);

/// Pixels of a profile.
const PROFILE: (f64, f64) = (360.0, 44.0);

/// Shares that a profile's height spans, as powers of two: what is smaller lies on the ground, and the highest is this or
/// the largest there is.
const SPAN: (f64, f64) = (-3.0, 6.0);

/// Draws how many elements have errors of which size.
pub fn histogram(markup: &mut Markup, histogram: &ErrorHistogram) {
    let mut bars: Vec<(ElementError, usize, String)> = Vec::new();
    if histogram.exact > 0 {
        bars.push((ElementError::Share(0.0), histogram.exact, "0".to_string()));
    }
    for bin in &histogram.bins {
        bars.push((ElementError::Share(2f64.powi(bin.exponent)), bin.count, power(bin.exponent)));
    }
    if histogram.unbounded > 0 {
        bars.push((ElementError::Share(f64::INFINITY), histogram.unbounded, "∞".to_string()));
    }
    if histogram.special > 0 {
        bars.push((ElementError::Special, histogram.special, "NaN".to_string()));
    }
    let (width, height) = BARS;
    let most = bars.iter().map(|(_, count, _)| *count).max().unwrap_or(1);
    let tall = |count: usize| height * (1.0 + count as f64).ln() / (1.0 + most as f64).ln();
    let slot = (width / bars.len().max(1) as f64).min(36.0);
    let right = bars.iter().take_while(|(error, _, _)| !error.is_wrong()).count();
    let label = histogram_words(histogram);
    let picture = Picture { class: "histogram", size: (width, height + 34.0), label: &label, data: &[] };
    markup.picture(&picture, |markup| {
        let mut labelled = f64::NEG_INFINITY;
        for (place, (error, count, name)) in bars.iter().enumerate() {
            let (x, tall) = (place as f64 * slot, tall(*count));
            if *count > 0 {
                let tall = tall.max(2.0);
                let path = format!(
                    "M{:.1} {:.1}h{:.1}v{tall:.1}h-{:.1}z",
                    x + 1.0,
                    16.0 + height - tall,
                    slot - 2.0,
                    slot - 2.0
                );
                markup.element("path", &[("class", Level::of(*error).class()), ("d", &path)], |markup| {
                    markup.leaf("title", &[], &format!("{count} elements"));
                });
            }
            // A label wants about 26 pixels.
            if x - labelled >= 26.0 {
                labelled = x;
                let (x, y) = (format!("{:.1}", x + slot / 2.0), format!("{:.0}", height + 30.0));
                markup.leaf("text", &[("x", &x), ("y", &y), ("text-anchor", "middle")], name);
            }
        }
        let ground = format!("M0 {0:.0}H{1:.0}", 16.0 + height, width);
        markup.void("path", &[("class", "ground"), ("d", &ground)]);
        let border = right as f64 * slot;
        if right < bars.len() {
            markup.void("path", &[("class", "limit"), ("d", &format!("M{border:.1} 0V{:.0}", 20.0 + height))]);
            let x = format!("{:.1}", border + 5.0);
            markup.leaf("text", &[("x", &x), ("y", "10"), ("class", "wrong")], "wrong →");
            if border > 60.0 {
                let x = format!("{:.1}", border - 5.0);
                markup.leaf("text", &[("x", &x), ("y", "10"), ("text-anchor", "end")], "← allowed");
            }
        }
    });
}

fn power(exponent: i32) -> String {
    let digits: String = exponent.to_string().chars().map(superscript).collect();
    if exponent == 0 { "1".to_string() } else { format!("2{digits}") }
}

fn superscript(digit: char) -> char {
    match digit {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        '9' => '⁹',
        _ => '⁰',
    }
}

fn histogram_words(histogram: &ErrorHistogram) -> String {
    let right: usize = histogram.bins.iter().filter(|bin| bin.exponent <= 0).map(|bin| bin.count).sum();
    let wrong: usize = histogram.bins.iter().filter(|bin| bin.exponent > 0).map(|bin| bin.count).sum();
    let mut text = format!("{} elements without error, {right} with an allowed one", histogram.exact);
    let _ = write!(text, ", {} wrong", wrong + histogram.unbounded + histogram.special);
    let most = histogram.bins.iter().filter(|bin| bin.exponent > 0).max_by_key(|bin| bin.count);
    if let Some(bin) = most.filter(|bin| bin.count > 0) {
        let _ = write!(text, ", most of them by up to {} times what is allowed", power(bin.exponent));
    }
    text
}

/// Draws the largest error by the index along each dim, all to one scale.
pub fn profiles(markup: &mut Markup, profiles: &[Profile]) {
    let power = |error: &ElementError| match error {
        ElementError::Share(share) if share.is_finite() => share.log2(),
        _ => SPAN.1,
    };
    let highest = profiles.iter().flat_map(|profile| &profile.errors).map(power).fold(SPAN.1, f64::max);
    for one in profiles {
        profile(markup, one, highest);
    }
}

fn profile(markup: &mut Markup, profile: &Profile, highest: f64) {
    let (width, height) = PROFILE;
    let slot = width / profile.errors.len().max(1) as f64;
    let scaled = |share: f64| height * ((share.log2() - SPAN.0) / (highest - SPAN.0)).clamp(0.03, 1.0);
    let tall = |error: ElementError| match error {
        ElementError::NotJudged | ElementError::Share(0.0) => 0.0,
        ElementError::Share(share) => scaled(share),
        ElementError::Special => height,
    };
    let label = profile_words(profile);
    let picture = Picture { class: "profile", size: (width, height + 16.0), label: &label, data: &[] };
    markup.picture(&picture, |markup| {
        for level in Level::all() {
            let mut path = String::new();
            for (place, error) in profile.errors.iter().enumerate().filter(|(_, error)| Level::of(**error) == level) {
                let (x, tall) = (place as f64 * slot, tall(*error));
                if tall > 0.0 {
                    let _ = write!(path, "M{x:.1} {:.1}h{slot:.2}v{tall:.1}h-{slot:.2}z", height - tall);
                }
            }
            if !path.is_empty() {
                markup.void("path", &[("class", level.class()), ("d", &path)]);
            }
        }
        let ground = format!("M0 {height:.0}H{width:.0}");
        markup.void("path", &[("class", "ground"), ("d", &ground)]);
        let limit = format!("M0 {0:.1}H{width:.0}", height - scaled(1.0));
        markup.void("path", &[("class", "behind"), ("d", &limit)]);
        markup.void("path", &[("class", "limit"), ("d", &limit)]);
        let y = format!("{:.0}", height + 13.0);
        markup.leaf("text", &[("x", "0"), ("y", &y)], "0");
        let (x, last) = (format!("{width:.0}"), (profile.size - 1).to_string());
        markup.leaf("text", &[("x", &x), ("y", &y), ("text-anchor", "end")], &last);
        let middle = format!("{:.0}", width / 2.0);
        markup.leaf("text", &[("x", &middle), ("y", &y), ("text-anchor", "middle")], &format!("dim {}", profile.axis));
    });
}

fn profile_words(profile: &Profile) -> String {
    let wrong: Vec<usize> = (0..profile.errors.len()).filter(|place| profile.errors[*place].is_wrong()).collect();
    let (Some(first), Some(last)) = (wrong.first(), wrong.last()) else {
        return format!("along dim {} nothing is wrong", profile.axis);
    };
    let last = ((last + 1) * profile.step).min(profile.size) - 1;
    format!("largest error along dim {}: wrong from index {} to {last}", profile.axis, first * profile.step)
}
