//! The header of a `.npy` file: a dictionary as Python writes it, with three keys.

use super::NpyError;

/// What the header says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header<'a> {
    pub descriptor: &'a str,
    pub fortran_order: bool,
    pub shape: Vec<usize>,
}

/// More dimensions than NumPy has.
const MOST_DIMENSIONS: usize = 64;

impl<'a> Header<'a> {
    pub fn read(text: &'a str) -> Result<Self, NpyError> {
        let mut scanner = Scanner { rest: text };
        let (mut descriptor, mut fortran_order, mut shape) = (None, None, None);
        scanner.expect('{')?;
        while !scanner.take('}') {
            let key = scanner.text()?;
            scanner.expect(':')?;
            match key {
                "descr" => descriptor = Some(scanner.text()?),
                "fortran_order" => fortran_order = Some(scanner.boolean()?),
                "shape" => shape = Some(scanner.sizes()?),
                other => return Err(NpyError::Header(format!("the key '{other}' is not known"))),
            }
            if !scanner.take(',') {
                scanner.expect('}')?;
                break;
            }
        }
        let missing = |key: &str| NpyError::Header(format!("the key '{key}' is missing"));
        Ok(Self {
            descriptor: descriptor.ok_or_else(|| missing("descr"))?,
            fortran_order: fortran_order.ok_or_else(|| missing("fortran_order"))?,
            shape: shape.ok_or_else(|| missing("shape"))?,
        })
    }

    /// The kind of the elements and the bytes of one.
    pub fn elements(&self) -> Result<(char, usize), NpyError> {
        let refused = || NpyError::Elements(self.descriptor.to_string());
        let mut characters = self.descriptor.chars();
        let (Some(order), Some(kind)) = (characters.next(), characters.next()) else { return Err(refused()) };
        let size: usize = characters.as_str().parse().map_err(|_| refused())?;
        let known = match kind {
            'f' => matches!(size, 2 | 4 | 8),
            'i' | 'u' => matches!(size, 1 | 2 | 4 | 8),
            'b' => size == 1,
            'V' => (1..=16).contains(&size),
            _ => false,
        };
        // One byte has no order; '=' is never written to files.
        let little = order == '<' || (order == '|' && (size == 1 || kind == 'V'));
        if known && little { Ok((kind, size)) } else { Err(refused()) }
    }
}

struct Scanner<'a> {
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    fn take(&mut self, character: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(character) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, character: char) -> Result<(), NpyError> {
        if self.take(character) { Ok(()) } else { Err(self.unexpected(&format!("'{character}'"))) }
    }

    fn unexpected(&self, wanted: &str) -> NpyError {
        let found: String = self.rest.chars().take(20).collect();
        NpyError::Header(format!("{wanted} was expected before \"{}\"", found.trim_end()))
    }

    fn text(&mut self) -> Result<&'a str, NpyError> {
        let quote = if self.take('\'') {
            '\''
        } else if self.take('"') {
            '"'
        } else {
            // A list here is an array of records.
            return Err(self.unexpected("a text"));
        };
        let (text, rest) = self.rest.split_once(quote).ok_or_else(|| self.unexpected("the end of a text"))?;
        self.rest = rest;
        Ok(text)
    }

    fn boolean(&mut self) -> Result<bool, NpyError> {
        self.rest = self.rest.trim_start();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err(self.unexpected("True or False"))
    }

    fn sizes(&mut self) -> Result<Vec<usize>, NpyError> {
        let mut sizes = Vec::new();
        self.expect('(')?;
        while !self.take(')') {
            self.rest = self.rest.trim_start();
            let digits = self.rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(self.rest.len());
            let (number, rest) = self.rest.split_at(digits);
            sizes.push(number.parse().map_err(|_| self.unexpected("a size"))?);
            self.rest = rest;
            if sizes.len() > MOST_DIMENSIONS {
                return Err(NpyError::Header(format!("the shape has more than {MOST_DIMENSIONS} dimensions")));
            }
            if !self.take(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(sizes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_every_spelling_are_read() {
        let header = Header::read("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n").unwrap();
        assert_eq!(
            (header.descriptor, header.fortran_order, header.shape.as_slice()),
            ("<f4", false, [3, 4].as_slice())
        );
        let header = Header::read(r#"{"shape":(7,),"fortran_order":True,"descr":"|u1"}"#).unwrap();
        assert_eq!((header.elements(), header.fortran_order), (Ok(('u', 1)), true));
        assert_eq!(header.shape, [7]);
        assert_eq!(Header::read("{'descr': '|V2', 'fortran_order': False, 'shape': ()}").unwrap().shape, [0usize; 0]);
    }

    #[test]
    fn what_is_no_header_is_refused_in_words() {
        let cases = [
            ("", "'{' was expected before \"\""),
            ("{'descr': [('a', '<f4')], ", "a text was expected before \"[('a', '<f4')],\""),
            ("{'descr': '<f4'}", "the key 'fortran_order' is missing"),
            ("{'descr': '<f4', 'fortran_order': maybe}", "True or False was expected before \"maybe}\""),
            ("{'shape': (1 2)}", "')' was expected before \"2)}\""),
            ("{'shape': (-1,)}", "a size was expected before \"-1,)}\""),
            ("{'shape': (99999999999999999999999,)}", "a size was expected before \"99999999999999999999\""),
            ("{'other': 1}", "the key 'other' is not known"),
            ("{'descr", "the end of a text was expected before \"descr\""),
        ];
        for (text, expected) in cases {
            assert_eq!(Header::read(text), Err(NpyError::Header(expected.to_string())), "{text}");
        }
        for wrong in [">f4", "=f4", "<c8", "|O", "<U4", "", "f", "<f3", "|i4", "é"] {
            let header = Header { descriptor: wrong, fortran_order: false, shape: Vec::new() };
            assert_eq!(header.elements(), Err(NpyError::Elements(wrong.to_string())), "{wrong}");
        }
    }
}
