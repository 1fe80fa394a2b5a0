//! The formats of `printf`, as far as kernels have them.

use super::system::MOST_PRINTED;

/// One conversion of a format.
#[derive(Debug, Default)]
struct Conversion {
    left: bool,
    plus: bool,
    space: bool,
    zero: bool,
    alternative: bool,
    width: usize,
    precision: Option<usize>,
    long: bool,
}

/// The text that a format gives, cut short once it is longer than a block may print. Arguments lie one after the other, each at a multiple of its size.
pub(super) fn format_text(
    format: &str,
    read: impl Fn(u64, usize) -> Option<Vec<u8>>,
    text_at: impl Fn(u64) -> String,
) -> String {
    let mut out = String::new();
    let mut offset = 0u64;
    let mut take = |bytes: usize| -> u64 {
        offset = offset.next_multiple_of(bytes as u64);
        let mut word = [0; 8];
        if let Some(found) = read(offset, bytes) {
            word[..bytes].copy_from_slice(&found);
        }
        offset += bytes as u64;
        u64::from_le_bytes(word)
    };
    let mut characters = format.chars().peekable();
    while let Some(character) = characters.next()
        && out.len() <= MOST_PRINTED
    {
        if character != '%' {
            out.push(character);
            continue;
        }
        let mut conversion = Conversion::default();
        while let Some(flag) = characters.next_if(|next| "-+ 0#".contains(*next)) {
            match flag {
                '-' => conversion.left = true,
                '+' => conversion.plus = true,
                ' ' => conversion.space = true,
                '0' => conversion.zero = true,
                _ => conversion.alternative = true,
            }
        }
        let mut number = |characters: &mut std::iter::Peekable<std::str::Chars<'_>>| -> Option<usize> {
            if characters.next_if_eq(&'*').is_some() {
                return Some(take(4) as i32 as usize & 0xFFFF);
            }
            let mut found = None;
            while let Some(digit) = characters.peek().and_then(|next| next.to_digit(10)) {
                characters.next();
                found = Some((found.unwrap_or(0) * 10 + digit as usize).min(4096));
            }
            found
        };
        conversion.width = number(&mut characters).unwrap_or(0);
        if characters.next_if_eq(&'.').is_some() {
            conversion.precision = Some(number(&mut characters).unwrap_or(0));
        }
        while let Some(length) = characters.next_if(|next| "hljztL".contains(*next)) {
            conversion.long |= length != 'h';
        }
        let Some(kind) = characters.next() else { break };
        let bytes = if conversion.long { 8 } else { 4 };
        let signed = |bits: u64| if bytes == 8 { bits as i64 } else { i64::from(bits as i32) };
        let body = match kind {
            '%' => "%".to_string(),
            'd' | 'i' => {
                let value = signed(take(bytes));
                sign(&conversion, value < 0) + &digits(&conversion, value.unsigned_abs().to_string())
            }
            'u' => digits(&conversion, take(bytes).to_string()),
            'x' => digits(&conversion, prefixed(&conversion, "0x", format!("{:x}", take(bytes)))),
            'X' => digits(&conversion, prefixed(&conversion, "0X", format!("{:X}", take(bytes)))),
            'o' => digits(&conversion, prefixed(&conversion, "0", format!("{:o}", take(bytes)))),
            'p' => format!("{:#x}", take(8)),
            'c' => char::from_u32(take(4) as u32 & 0xFF).unwrap_or('?').to_string(),
            's' => {
                let text = text_at(take(8));
                text.chars().take(conversion.precision.unwrap_or(usize::MAX)).collect()
            }
            'f' | 'F' | 'e' | 'E' | 'g' | 'G' | 'a' | 'A' => float(&conversion, kind, f64::from_bits(take(8))),
            other => format!("%{other}"),
        };
        pad(&mut out, &conversion, body, !matches!(kind, 's' | 'c' | '%'));
    }
    out
}

fn sign(conversion: &Conversion, negative: bool) -> String {
    match (negative, conversion.plus, conversion.space) {
        (true, ..) => "-".to_string(),
        (_, true, _) => "+".to_string(),
        (_, _, true) => " ".to_string(),
        _ => String::new(),
    }
}

fn digits(conversion: &Conversion, text: String) -> String {
    let missing = conversion.precision.unwrap_or(0).saturating_sub(text.len());
    "0".repeat(missing) + &text
}

fn prefixed(conversion: &Conversion, prefix: &str, text: String) -> String {
    if conversion.alternative && text != "0" { prefix.to_string() + &text } else { text }
}

fn float(conversion: &Conversion, kind: char, value: f64) -> String {
    let sign = sign(conversion, value.is_sign_negative() && !value.is_nan());
    let precision = conversion.precision.unwrap_or(6);
    let magnitude = value.abs();
    let body = if value.is_nan() {
        "nan".to_string()
    } else if value.is_infinite() {
        "inf".to_string()
    } else {
        match kind.to_ascii_lowercase() {
            'e' => exponent_form(magnitude, precision),
            'g' => general_form(magnitude, precision.max(1), conversion.alternative),
            _ => format!("{magnitude:.precision$}"),
        }
    };
    let body = if kind.is_ascii_uppercase() { body.to_ascii_uppercase() } else { body };
    sign + &body
}

/// As C writes it: at least two digits in the exponent, and its sign.
fn exponent_form(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

fn general_form(value: f64, precision: usize, alternative: bool) -> String {
    let rounded = format!("{value:.*e}", precision - 1);
    let exponent: i32 = rounded.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    let trim = |text: String| {
        if alternative || !text.contains('.') {
            text
        } else {
            text.trim_end_matches('0').trim_end_matches('.').to_string()
        }
    };
    if exponent < -4 || exponent >= precision as i32 {
        let text = exponent_form(value, precision - 1);
        match text.split_once('e') {
            Some((mantissa, exponent)) => format!("{}e{exponent}", trim(mantissa.to_string())),
            None => text,
        }
    } else {
        trim(format!("{value:.*}", (precision as i32 - 1 - exponent).max(0) as usize))
    }
}

fn pad(out: &mut String, conversion: &Conversion, body: String, is_number: bool) {
    let missing = conversion.width.saturating_sub(body.chars().count());
    if conversion.left {
        out.push_str(&body);
        out.push_str(&" ".repeat(missing));
    } else if conversion.zero && is_number {
        let signs = body.len() - body.trim_start_matches(['-', '+', ' ']).len();
        out.push_str(&body[..signs]);
        out.push_str(&"0".repeat(missing));
        out.push_str(&body[signs..]);
    } else {
        out.push_str(&" ".repeat(missing));
        out.push_str(&body);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formatted(format: &str, arguments: &[u8]) -> String {
        let read =
            |offset: u64, bytes: usize| arguments.get(offset as usize..offset as usize + bytes).map(<[u8]>::to_vec);
        format_text(format, read, |address| format!("<{address}>"))
    }

    #[test]
    fn numbers_are_written_as_c_does() {
        let mut arguments = Vec::new();
        arguments.extend_from_slice(&(-5i32).to_le_bytes());
        arguments.extend_from_slice(&[0; 4]);
        arguments.extend_from_slice(&1.5f64.to_le_bytes());
        arguments.extend_from_slice(&7u32.to_le_bytes());
        assert_eq!(formatted("%d|%6.2f|%03u%%\n", &arguments), "-5|  1.50|007%\n");
        let arguments = 0.000_012_345f64.to_le_bytes();
        assert_eq!(formatted("%e", &arguments), "1.234500e-05");
        assert_eq!(formatted("%g", &arguments), "1.2345e-05");
        assert_eq!(formatted("%g", &100_000f64.to_le_bytes()), "100000");
        assert_eq!(formatted("%g", &1_000_000f64.to_le_bytes()), "1e+06");
        assert_eq!(formatted("%-6s|", &64u64.to_le_bytes()), "<64>  |");
        assert_eq!(formatted("%#lx %c", &[255, 0, 0, 0, 0, 0, 0, 0, 65, 0, 0, 0]), "0xff A");
        assert_eq!(formatted("%5d", &[]), "    0", "what is not there reads as zero");
    }
}
