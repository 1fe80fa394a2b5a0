//! Whole numbers: fields of bits, permutations, products of bytes.

/// `bfe.u32`: `length` bits from `position` on; bits beyond the register are 0. Of both numbers only 8 bits count.
#[inline(always)]
pub fn extract_u32(bits: u32, position: u32, length: u32) -> u32 {
    extract_u64(bits.into(), position & 0xFF, length & 0xFF) as u32
}

/// `bfe.s32`: as above, the last bit repeated; beyond the register that is its highest one.
#[inline(always)]
pub fn extract_s32(bits: u32, position: u32, length: u32) -> u32 {
    extract_s64(bits as i32 as u64, position & 0xFF, length & 0xFF) as u32
}

/// `bfe.u64`. Recorded: here all bits of both numbers count, unlike for 32 bits.
#[inline(always)]
pub fn extract_u64(bits: u64, position: u32, length: u32) -> u64 {
    let shifted = if position > 63 { 0 } else { bits >> (position & 63) };
    if length > 63 { shifted } else { shifted & ((1 << (length & 63)) - 1) }
}

/// `bfe.s64`
#[inline(always)]
pub fn extract_s64(bits: u64, position: u32, length: u32) -> u64 {
    let shifted = bits as i64 >> position.min(63);
    let cut = 64 - length.min(64);
    if length == 0 { 0 } else { (shifted << (cut & 63) >> (cut & 63)) as u64 }
}

/// `bfi.b32`: the low `length` bits of `field` put into `bits` from `position` on.
#[inline(always)]
pub fn insert_32(field: u32, bits: u32, position: u32, length: u32) -> u32 {
    insert_64(field.into(), bits.into(), position & 0xFF, length & 0xFF) as u32
}

/// `bfi.b64`. All bits of both numbers count.
#[inline(always)]
pub fn insert_64(field: u64, bits: u64, position: u32, length: u32) -> u64 {
    let mask = if length > 63 { u64::MAX } else { (1 << (length & 63)) - 1 };
    let place = position & 63;
    if position > 63 { bits } else { bits & !(mask << place) | (field << place) & mask << place }
}

/// `bfind`: the place of the highest bit that is not a sign, of `width` bits; all ones if there is none.
#[inline(always)]
pub fn find(bits: u64, width: u32, shift_amount: bool) -> u32 {
    match bits {
        0 => u32::MAX,
        _ if shift_amount => bits.leading_zeros() - (64 - width),
        _ => 63 - bits.leading_zeros(),
    }
}

/// `fns`: the place of the n-th bit that is set, from `base` on, upwards or downwards; all ones if there is none.
pub fn find_nth(mask: u32, base: u32, offset: i32) -> u32 {
    let set = |place: i64| (0..32).contains(&place) && mask >> place & 1 == 1;
    let base = i64::from(base);
    if offset == 0 {
        return if set(base) { base as u32 } else { u32::MAX };
    }
    let step = i64::from(offset.signum());
    let mut left = offset.unsigned_abs() - 1;
    let mut place = base;
    while (0..32).contains(&place) {
        if set(place) {
            if left == 0 {
                return place as u32;
            }
            left -= 1;
        }
        place += step;
    }
    u32::MAX
}

/// `bmsk`: `length` ones from `position` on.
#[inline(always)]
pub fn mask(position: u32, length: u32, clamp: bool) -> u32 {
    let (from, sum) = (position & 31, (position & 31) + (length & 31));
    let above = if sum >= 32 || (clamp && length >= 32) { 0 } else { u32::MAX << (sum & 31) };
    let below = if clamp && position >= 32 { 0 } else { u32::MAX << from };
    below & !above
}

/// `szext`: the low `length` bits, extended by zeros or by their highest one.
#[inline(always)]
pub fn size_extend(bits: u32, length: u32, clamp: bool, signed: bool) -> u32 {
    let kept = length & 31;
    let whole = clamp && length >= 32;
    let mask = if whole { 0 } else { u32::MAX << kept };
    let sign = signed && kept != 0 && !whole && bits >> (kept.wrapping_sub(1) & 31) & 1 == 1;
    bits & !mask | if sign { mask } else { 0 }
}

/// `prmt`: four bytes of eight, each picked by four bits of `selector`; the highest of these repeats the byte's sign.
#[inline(always)]
pub fn permute(a: u32, b: u32, selector: u32) -> u32 {
    let bytes = u64::from(b) << 32 | u64::from(a);
    let mut result = 0;
    for place in 0..4 {
        let pick = selector >> (4 * place);
        let byte = (bytes >> (8 * (pick & 7))) as u32 & 0xFF;
        let sign = if byte & 0x80 != 0 { 0xFF } else { 0 };
        result |= (if pick & 8 != 0 { sign } else { byte }) << (8 * place);
    }
    result
}

/// The selectors of the modes of `prmt`, by the lowest two bits of its third operand.
pub fn permute_mode(mode: &str) -> Option<[u16; 4]> {
    Some(match mode {
        "f4e" => [0x3210, 0x4321, 0x5432, 0x6543],
        "b4e" => [0x5670, 0x6701, 0x7012, 0x0123],
        "rc8" => [0x0000, 0x1111, 0x2222, 0x3333],
        "ecl" => [0x3210, 0x3211, 0x3222, 0x3333],
        "ecr" => [0x0000, 0x1110, 0x2210, 0x3210],
        "rc16" => [0x1010, 0x3232, 0x1010, 0x3232],
        _ => return None,
    })
}

/// `lop3`: any function of three bits, by its table.
#[inline(always)]
pub fn logic3(a: u32, b: u32, c: u32, table: u32) -> u32 {
    let all = |place: u32| 0_u32.wrapping_sub(table >> place & 1);
    let choose = |condition: u32, yes: u32, no: u32| no ^ (condition & (yes ^ no));
    let without = choose(b, choose(c, all(3), all(2)), choose(c, all(1), all(0)));
    let with = choose(b, choose(c, all(7), all(6)), choose(c, all(5), all(4)));
    choose(a, with, without)
}

/// A byte or half of a word as a number.
#[inline(always)]
fn part(word: u32, place: u32, width: u32, signed: bool) -> i32 {
    let up = (word << (32 - width - place)) as i32;
    if signed { up >> (32 - width) } else { (up as u32 >> (32 - width)) as i32 }
}

/// `dp4a`: the sum of the products of four bytes each, and `c`.
#[inline(always)]
pub fn dot4(a: u32, b: u32, c: u32, signed: (bool, bool)) -> u32 {
    let product = |place| part(a, place, 8, signed.0).wrapping_mul(part(b, place, 8, signed.1));
    [0, 8, 16, 24].into_iter().fold(c as i32, |sum, place| sum.wrapping_add(product(place))) as u32
}

/// `dp2a`: the sum of the products of two halves and two bytes, the lower or the upper ones, and `c`.
#[inline(always)]
pub fn dot2(a: u32, b: u32, c: u32, signed: (bool, bool), upper: bool) -> u32 {
    let b = if upper { b >> 16 } else { b };
    let low = part(a, 0, 16, signed.0).wrapping_mul(part(b, 0, 8, signed.1));
    let high = part(a, 16, 16, signed.0).wrapping_mul(part(b, 8, 8, signed.1));
    (c as i32).wrapping_add(low).wrapping_add(high) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_three_bits_is_looked_up() {
        for table in 0..256 {
            // These operands hold every combination of three bits, in the order of the table.
            assert_eq!(logic3(0xF0, 0xCC, 0xAA, table) & 0xFF, table);
        }
    }

    #[test]
    fn the_nth_set_bit_is_found_both_ways() {
        assert_eq!(find_nth(0b1011_0100, 3, 1), 4);
        assert_eq!(find_nth(0b1011_0100, 3, 3), 7);
        assert_eq!(find_nth(0b1011_0100, 3, -1), 2);
        assert_eq!(find_nth(0b1011_0100, 3, -2), u32::MAX);
        assert_eq!((find_nth(0b1000, 3, 0), find_nth(0b1000, 2, 0)), (3, u32::MAX));
        assert_eq!((find_nth(u32::MAX, 32, 1), find_nth(u32::MAX, 40, 0)), (u32::MAX, u32::MAX));
    }
}
