//! Opcodes of products of matrices.

use super::element::Element;
use super::forms;
use super::product::{Combination, Family, MatrixProduct};

/// Reads an opcode; see `MatrixProduct::from_opcode`.
pub(super) fn product(opcode: &str) -> Result<Option<MatrixProduct>, String> {
    let parts: Vec<&str> = opcode.split('.').collect();
    let read = match parts.as_slice() {
        ["mma", rest @ ..] => mma(rest),
        ["wmma", "mma", rest @ ..] => wmma(rest),
        _ => return Ok(None),
    };
    read.map(Some).map_err(|why| format!("{opcode}: {why}"))
}

/// The shape that a modifier says, as in `m16n8k16`.
pub(super) fn shape(text: &str) -> Option<(usize, usize, usize)> {
    let (m, rest) = text.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    Some((m.parse().ok()?, n.parse().ok()?, k.parse().ok()?))
}

/// Modifiers, one after the other.
struct Modifiers<'a> {
    left: &'a [&'a str],
}

impl<'a> Modifiers<'a> {
    /// Whether the next one is this; if so, it is taken.
    fn take(&mut self, name: &str) -> bool {
        let found = self.left.first() == Some(&name);
        if found {
            self.left = &self.left[1..];
        }
        found
    }

    /// The next one, whatever it is.
    fn next(&mut self, what: &str) -> Result<&'a str, String> {
        let (first, rest) = self.left.split_first().ok_or_else(|| format!("{what} is missing"))?;
        self.left = rest;
        Ok(first)
    }

    fn shape(&mut self) -> Result<(usize, usize, usize), String> {
        let text = self.next("the shape")?;
        shape(text).ok_or_else(|| format!("`{text}` is no shape of matrices"))
    }

    fn element(&mut self, what: &str) -> Result<Element, String> {
        let text = self.next(what)?;
        Element::from_name(text).ok_or_else(|| format!("`{text}` is not known as {what}"))
    }

    /// Whether a matrix lies by columns.
    fn by_columns(&mut self) -> Result<bool, String> {
        match self.next("the order of a matrix")? {
            "row" => Ok(false),
            "col" => Ok(true),
            other => Err(format!("`{other}` is no order of a matrix: it is `row` or `col`")),
        }
    }

    fn bits(&mut self) -> Result<Option<Combination>, String> {
        let combination = if self.take("xor") {
            Combination::DifferentBits
        } else if self.take("and") {
            Combination::CommonBits
        } else {
            return Ok(None);
        };
        if self.take("popc") { Ok(Some(combination)) } else { Err("`popc` is missing".to_string()) }
    }

    fn end(&self) -> Result<(), String> {
        match self.left.first() {
            Some(other) => Err(format!("the modifier `{other}` is not known")),
            None => Ok(()),
        }
    }
}

fn mma(parts: &[&str]) -> Result<MatrixProduct, String> {
    let mut modifiers = Modifiers { left: parts };
    if modifiers.take("sp") || modifiers.left.first().is_some_and(|part| part.starts_with("sp::")) {
        return Err("products of sparse matrices are not known".to_string());
    }
    if !modifiers.take("sync") {
        return Err("`sync` is missing".to_string());
    }
    modifiers.take("aligned");
    let (m, n, k) = modifiers.shape()?;
    let (a_by_columns, b_by_columns) = (modifiers.by_columns()?, modifiers.by_columns()?);
    let saturate = modifiers.take("satfinite");
    let d = modifiers.element("the type of D")?;
    let a = modifiers.element("the type of A")?;
    let b = modifiers.element("the type of B")?;
    let c = modifiers.element("the type of C")?;
    let bits = modifiers.bits()?;
    modifiers.end()?;
    let quad_pairs = forms::QUAD_PAIRS.has((m, n, k), a, b, d, c);
    let family = if quad_pairs { Family::MmaQuadPairs { a_by_columns, b_by_columns } } else { Family::Mma };
    if !quad_pairs && !forms::MMA.iter().any(|form| form.has((m, n, k), a, b, d, c)) {
        return Err("there is no such product of this shape and these types".to_string());
    }
    if !quad_pairs && (a_by_columns, b_by_columns) != (false, true) {
        return Err("only `row.col` is known for this shape".to_string());
    }
    checked(MatrixProduct { family, m, n, k, d, a, b, c, combination: Combination::Product, saturate }, bits)
}

fn wmma(parts: &[&str]) -> Result<MatrixProduct, String> {
    let mut modifiers = Modifiers { left: parts };
    let bits = modifiers.bits()?;
    if !modifiers.take("sync") {
        return Err("`sync` is missing".to_string());
    }
    modifiers.take("aligned");
    // The fragments are laid out alike for both orders: `wmma.load` has seen to that.
    let (a_by_columns, b_by_columns) = (modifiers.by_columns()?, modifiers.by_columns()?);
    let (m, n, k) = modifiers.shape()?;
    let rounding = modifiers.take("rn");
    if let Some(other @ ("rz" | "rm" | "rp")) = modifiers.left.first().copied() {
        return Err(format!("products that round with `{other}` are not known"));
    }
    let d = modifiers.element("the type of D")?;
    let second = modifiers.element("the type of C, or of A")?;
    // Half precision is written with the types of D and C alone.
    let (a, b, c) = match modifiers.left.first().and_then(|part| Element::from_name(part)) {
        Some(_) => (second, modifiers.element("the type of B")?, modifiers.element("the type of C")?),
        None => (Element::F16, Element::F16, second),
    };
    let saturate = modifiers.take("satfinite");
    modifiers.end()?;
    if !forms::WMMA.iter().any(|form| form.has((m, n, k), a, b, d, c)) {
        return Err("there is no such product of this shape and these types".to_string());
    }
    if rounding && d != Element::F64 {
        return Err("only products of f64 say how they round".to_string());
    }
    if a.bits() < 8 && (a_by_columns, b_by_columns) != (false, true) {
        return Err("only `row.col` is known for elements smaller than a byte".to_string());
    }
    let family = Family::Wmma;
    checked(MatrixProduct { family, m, n, k, d, a, b, c, combination: Combination::Product, saturate }, bits)
}

/// The product, if what it says beside shape and types fits them.
fn checked(product: MatrixProduct, bits: Option<Combination>) -> Result<MatrixProduct, String> {
    if product.saturate && matches!(product.a, Element::B1 | Element::F64) {
        return Err("`satfinite` is not known for these types".to_string());
    }
    if product.saturate && product.d != Element::S32 {
        return Err("`satfinite` is known for products of integers only".to_string());
    }
    match (product.a == Element::B1, bits) {
        (true, Some(combination)) => Ok(MatrixProduct { combination, ..product }),
        (false, None) => Ok(product),
        (true, None) => Err("products of bits say `xor.popc` or `and.popc`".to_string()),
        (false, Some(_)) => Err("`popc` is known for products of bits only".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registers::RegisterWidth;

    fn counts(opcode: &str) -> [usize; 4] {
        let registers = product(opcode).unwrap().unwrap().registers();
        [registers.d.count, registers.a.count, registers.b.count, registers.c.count]
    }

    #[test]
    fn every_form_has_the_registers_of_the_manual() {
        for (opcode, expected) in [
            ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", [4, 4, 2, 4]),
            ("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16", [2, 2, 1, 2]),
            ("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", [4, 2, 1, 4]),
            ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", [4, 4, 2, 4]),
            ("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", [4, 2, 1, 4]),
            ("mma.sync.aligned.m8n8k4.col.row.f32.f16.f16.f16", [8, 2, 2, 4]),
            ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", [2, 1, 1, 2]),
            ("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64", [4, 8, 4, 4]),
            ("mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e5m2.f16", [2, 4, 2, 2]),
            ("mma.sync.aligned.m16n8k16.row.col.f32.e5m2.e4m3.f32", [4, 2, 1, 4]),
            ("mma.sync.aligned.m8n8k16.row.col.s32.u8.s8.s32", [2, 1, 1, 2]),
            ("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32", [4, 4, 2, 4]),
            ("mma.sync.aligned.m8n8k32.row.col.s32.s4.u4.s32", [2, 1, 1, 2]),
            ("mma.sync.aligned.m16n8k64.row.col.satfinite.s32.u4.u4.s32", [4, 4, 2, 4]),
            ("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc", [2, 1, 1, 2]),
            ("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc", [4, 4, 2, 4]),
            ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", [8, 8, 8, 8]),
            ("wmma.mma.sync.aligned.col.row.m8n32k16.f16.f32", [4, 8, 8, 8]),
            ("wmma.mma.sync.aligned.col.row.m32n8k16.f32.bf16.bf16.f32", [8, 8, 2, 8]),
            ("wmma.mma.sync.aligned.col.row.m8n32k16.f32.bf16.bf16.f32", [8, 2, 8, 8]),
            ("wmma.mma.sync.aligned.row.row.m16n16k16.s32.s8.s8.s32.satfinite", [8, 2, 2, 8]),
            ("wmma.mma.sync.aligned.row.row.m8n32k16.s32.u8.u8.s32", [8, 1, 4, 8]),
            ("wmma.mma.sync.aligned.row.row.m32n8k16.s32.u8.u8.s32", [8, 4, 1, 8]),
            ("wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32", [8, 4, 4, 8]),
            ("wmma.mma.sync.aligned.row.row.m8n8k4.rn.f64.f64.f64.f64", [2, 1, 1, 2]),
            ("wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.s4.s32", [2, 1, 1, 2]),
            ("wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32", [2, 1, 1, 2]),
        ] {
            assert_eq!(counts(opcode), expected, "{opcode}");
        }
        let double = product("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64").unwrap().unwrap().registers();
        assert_eq!((double.a.width, double.d.width), (RegisterWidth::B64, RegisterWidth::B64));
    }

    #[test]
    fn forms_that_are_not_known_are_refused() {
        for (opcode, why) in [
            ("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", "sparse"),
            ("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", "sparse"),
            ("mma.sync.aligned.m16n8k16.col.col.f32.f16.f16.f32", "row.col"),
            ("mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32", "no such product"),
            ("mma.sync.aligned.m16n8k16.row.col.bf16.bf16.bf16.bf16", "no such product"),
            ("mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0", "kind::mxf4"),
            ("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32.xor.popc", "popc"),
            ("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32", "popc"),
            ("mma.sync.aligned.m16n8k16.row.col.satfinite.f32.f16.f16.f32", "satfinite"),
            ("mma.sync.aligned.m16n8.row.col.f32.f16.f16.f32", "m16n8"),
            ("mma.sync.aligned.m16n8k16.row.col.f32", "type of A"),
            ("wmma.mma.sync.aligned.row.col.m8n8k4.rz.f64.f64.f64.f64", "rz"),
            ("wmma.mma.sync.aligned.row.row.m8n8k32.s32.s4.s4.s32", "row.col"),
            ("wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.u8.s32", "no such product"),
            ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32.what", "what"),
        ] {
            let error = product(opcode).unwrap_err();
            assert!(error.contains(why) && error.contains(opcode), "{error}");
        }
        assert_eq!(product("ldmatrix.sync.aligned.m8n8.x4.shared.b16"), Ok(None));
        assert_eq!(product("wmma.load.a.sync.aligned.row.m16n16k16.f16"), Ok(None));
        assert_eq!(product("wgmma.fence.sync.aligned"), Ok(None));
    }
}
