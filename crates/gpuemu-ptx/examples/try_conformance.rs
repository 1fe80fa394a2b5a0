#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]
use gpuemu_ptx::conformance::{Pack, run};
use gpuemu_ptx::machine::LaunchOptions;
fn main() {
    let dir = std::env::args().nth(1).unwrap();
    let pack = Pack::read(std::path::Path::new(&dir)).unwrap();
    let report = run(&pack, &LaunchOptions::default(), &|_| ()).unwrap();
    for l in &report.launches {
        let o = format!("{:?}", l.outcome);
        if o != "BitEqual" { println!("{} {} {:?}/{:?} {}", l.id, o, l.mismatches, l.elements, l.detail.lines().next().unwrap_or("")); }
        for f in l.findings.iter().take(2) { println!("  FINDING {} {:?} {} {:?} {:?} other {:?}", l.id, f.fault, f.message, f.place.as_ref().map(|p| (&p.instruction, p.ptx_line, p.line)), f.thread.map(|t| (t.warp, t.lane)), f.other.as_ref().map(|o| (o.place.ptx_line, o.thread.warp, o.thread.lane))); }
    }
    println!("{:?}", report.summary);
}
