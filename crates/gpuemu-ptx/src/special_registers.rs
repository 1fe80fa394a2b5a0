//! The registers that the hardware provides.

/// Names of special registers, sorted. `%pm` and `%envreg` are followed by a number.
const NAMES: &[&str] = &[
    "%aggr_smem_size",
    "%clock",
    "%clock64",
    "%clock_hi",
    "%cluster_ctaid",
    "%cluster_ctarank",
    "%cluster_nctaid",
    "%cluster_nctarank",
    "%clusterid",
    "%ctaid",
    "%current_graph_exec",
    "%dynamic_smem_size",
    "%globaltimer",
    "%globaltimer_hi",
    "%globaltimer_lo",
    "%gridid",
    "%is_explicit_cluster",
    "%laneid",
    "%lanemask_eq",
    "%lanemask_ge",
    "%lanemask_gt",
    "%lanemask_le",
    "%lanemask_lt",
    "%nclusterid",
    "%nctaid",
    "%nsmid",
    "%ntid",
    "%nwarpid",
    "%reserved_smem_offset_begin",
    "%reserved_smem_offset_cap",
    "%reserved_smem_offset_end",
    "%smid",
    "%tid",
    "%total_smem_size",
    "%warpid",
    "WARP_SZ",
];

/// Names that are followed by a number, and the most they may be followed by.
const NUMBERED: &[(&str, u32)] = &[("%envreg", 31), ("%pm", 7), ("%reserved_smem_offset_", 1)];

/// The special register of a name.
pub fn special(name: &str) -> Option<&'static str> {
    if let Ok(place) = NAMES.binary_search(&name) {
        return NAMES.get(place).copied();
    }
    let (stem, most) = NUMBERED.iter().find(|(stem, _)| name.starts_with(stem))?;
    let number = name[stem.len()..].trim_end_matches("_64");
    let number: u32 = number.parse().ok()?;
    (number <= *most).then_some(*stem)
}

/// Whether a name is that of a special register.
pub fn is_special(name: &str) -> bool {
    special(name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_found() {
        assert!(NAMES.is_sorted());
        assert!(is_special("%tid") && is_special("%envreg31") && is_special("%pm7") && is_special("%pm0_64"));
        assert!(!is_special("%tids") && !is_special("%envreg32") && !is_special("%pm") && !is_special("%r1"));
    }
}
