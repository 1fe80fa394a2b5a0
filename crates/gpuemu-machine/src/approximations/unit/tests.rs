//! All that the unit was recorded to answer: 82 million entries, by the digests of the recorded tables.

use sha2::{Digest, Sha256};

use super::*;

/// The digest of the answers to arguments that lie `step` apart.
fn digest<F: UnitFunction>(first: u32, step: usize, count: u32) -> String {
    let mut hash = Sha256::new();
    let mut bytes = Vec::with_capacity(4 << 16);
    for block in (0..count).step_by(1 << 16) {
        bytes.clear();
        for start in (block..block + (1 << 16)).step_by(LANES) {
            let arguments = std::array::from_fn(|lane| first + (start + lane as u32) * step as u32);
            for answer in answers::<F>(&arguments) {
                bytes.extend(answer.to_le_bytes());
            }
        }
        hash.update(&bytes);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

const ALL: u32 = 1 << 23;
const ONE: u32 = 0x3F80_0000;
const TWO: u32 = 0x4000_0000;
const HALF: u32 = 0x3F00_0000;

#[test]
fn reciprocals_are_those_recorded() {
    assert_eq!(digest::<Rcp>(ONE, 1, ALL), "c408381446132e07fa5581e930dc33fb790bea7ec4276ef3621e322df2492a55");
}

#[test]
fn reciprocal_roots_are_those_recorded() {
    assert_eq!(digest::<Rsqrt>(ONE, 1, ALL), "c733e1437c713cd7e87f4c7e52e9aab270b2107f274cda35309dc8586ad6ec22");
    assert_eq!(digest::<Rsqrt>(TWO, 1, ALL), "fd7b866f4085a9e88ef6abdd9ba2726eb26708fb17d173619dac4405acb06bc0");
}

#[test]
fn roots_are_those_recorded() {
    assert_eq!(digest::<Sqrt>(ONE, 1, ALL), "dc6925bfdd56d604760414da31328a657d4585a92e6285b7106eea847b864ab1");
    assert_eq!(digest::<Sqrt>(TWO, 1, ALL), "ffc55416e1586610267a0adf5b3a14983317cc4bfeac3272c865098345f56199");
}

#[test]
fn logarithms_are_those_recorded() {
    assert_eq!(digest::<Lg2>(ONE, 1, ALL), "7fd9be9a924e40a0ee18ba20e7f5158135112947597c8dd86131d3d4d8f9dbfa");
    assert_eq!(digest::<Lg2>(HALF, 1, ALL), "883e42d8f751983063b4c93a966fba006f08c1e111d90fe20e0fee3dd67ddd22");
}

/// The tables of these two hold every fraction of 23 bits, which no f32 is an argument for.
struct Fraction<F>(F);

impl UnitFunction for Fraction<Ex2> {
    const TABLE: &'static Table = Ex2::TABLE;
    const CURVE: Curve = Ex2::CURVE;

    fn place(bits: u32) -> Place {
        split(bits, 0)
    }

    fn finish(_: u32, _: u32, sum: u64) -> u32 {
        cut(sum, 38)
    }
}

impl UnitFunction for Fraction<Sin> {
    const TABLE: &'static Table = Sin::TABLE;
    const CURVE: Curve = Sin::CURVE;

    fn place(bits: u32) -> Place {
        split(bits, 0)
    }

    fn finish(_: u32, _: u32, sum: u64) -> u32 {
        cut(sum, 37)
    }
}

#[test]
fn powers_and_sines_are_those_recorded() {
    assert_eq!(digest::<Fraction<Ex2>>(0, 1, ALL), "b2a42c4a626469c986e33e43f16f41bde9d84de94347cd9ceaa1bd68d36bcdf0");
    assert_eq!(digest::<Fraction<Sin>>(0, 1, ALL), "57676af4861bf1ab7f9ee4cb0875a4e1abb7725e77fa0016a38c8a233c875ce6");
}

#[test]
fn hyperbolic_tangents_are_those_recorded() {
    let recorded = [
        "9d00d059c06f4498ea98fd6b6eb42ad6e36708d57dd54b9f9c862b7546ddb0d6",
        "bada8de0778d1405b490f779929a2102cef318b750c938f1055cfa66eef50072",
        "e2007bbb2b09a8e67ee65f3b7dd2d0eab51cab9964fe58983a17b788d42fe838",
        "aa8a04996959d0a926698d96e7e1823efeaecbf69d71f017700c834d00b7cee4",
        "3c82b151fc853b069ec30a580a9ae733e82d2691d00008e703d380f48d145ed8",
        "11db6442e39353f8e29b192d1f004cffa47bf397764823a91ce9032f2c577c2a",
        "daa114d8745f1f016ed8122c03ef314d57dcc6d0c2a9a4eee8383c5815886345",
        "1296384504e9100a7e5f692d4c618bd66abcba008ee0064eeb57050ff95b0a31",
        "aa724847969f3a20fe805b9da5a38c565456c9de0095ba332d1eaf84bd3190d5",
        "db0a90f4a04660e4cd8e3662b5eaa8efa8a41480bccda95f9f46b2a0d9701513",
        "6a2b9c5afe4eab1a2ce8b1f9eb75e9f4c220f4656ef493db2469bf4c7a69eeab",
    ];
    for (binade, expected) in recorded.into_iter().enumerate() {
        let dropped = TANH_BINADES[binade].1;
        let first = (119 + binade as u32) << 23;
        assert_eq!(digest::<Tanh>(first, 1 << dropped, ALL >> dropped), expected, "binade {binade}");
    }
}
