use gpuemu_corpus::{campaign, published::KERNELS};
fn main() {
    let cases: u64 = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(300);
    let only = std::env::args().nth(2);
    for entry in &KERNELS {
        if only.as_deref().is_some_and(|o| o != entry.name) { continue; }
        let subject = entry.subject().unwrap();
        let t = std::time::Instant::now();
        let row = campaign::run(entry, &subject, 0, cases, &|_| {});
        let c = row.counts;
        println!("{:2} {:24} {:?} det {} und {} trig {}/{} ulp {}/{} obs {}/{} naive {:?} weak {:?} class {:?} {:?}", entry.number, entry.name, entry.role(), c.detected, c.undetermined, c.triggered_detected, c.triggered, c.beyond_ulp_detected, c.beyond_ulp, c.observable_detected, c.observable, row.allclose_rejects(), row.weak, row.suspected, t.elapsed());
        if !row.verdict_is_right() || only.is_some() {
            if let Some((i, v)) = &row.first { println!("   {i} {:?}\n   {:?}", v.case, v.findings); }
        }
        if let Some(s) = &row.smallest { println!("   smallest {} {} {:?} runs {} neighbour {:?}", s.case.descriptor.sizes, s.case.descriptor.dtype, s.verdict.reason(), s.runs, s.neighbour); }
    }
}
