//! Slices in NumPy's syntax: `[0, 3:7, ::2, -1, ...]`.

use gpuemu_tensor::Tensor;

/// A slice that cannot be read, or that the tensor does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SliceError {
    text: String,
    /// Place of the mistake, in characters from 0.
    column: usize,
    message: String,
}

impl std::fmt::Display for SliceError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(formatter, "slice, column {}: {}", self.column + 1, self.message)?;
        writeln!(formatter, "  {}", self.text)?;
        write!(formatter, "  {}^", " ".repeat(self.column))
    }
}

/// What is taken of one dim, and where that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Item {
    column: usize,
    part: Part,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// One place; the dim goes away.
    Index(i64),
    /// `start:stop:step`.
    Range { start: Option<i64>, stop: Option<i64>, step: i64 },
    /// `...`: all of as many dims as are left over.
    Ellipsis,
}

/// The part of a tensor that a slice stands for; all of it for an empty one.
pub fn select(tensor: &Tensor, text: &str) -> Result<Tensor, SliceError> {
    let items = Reader::new(text).items()?;
    let failed = |column: usize, message: String| SliceError { text: text.to_string(), column, message };
    let rank = tensor.shape().len();
    let named = items.iter().filter(|item| item.part != Part::Ellipsis).count();
    if named > rank {
        let too_many = items.iter().filter(|item| item.part != Part::Ellipsis).nth(rank);
        let column = too_many.map_or(0, |item| item.column);
        return Err(failed(column, format!("the tensor has {rank} dims, but {named} are asked for")));
    }
    let (mut shape, mut strides) = (Vec::new(), Vec::new());
    let mut offset = tensor.offset() as i128;
    let mut dimension = 0;
    for item in &items {
        if item.part == Part::Ellipsis {
            for _ in named..rank {
                shape.push(tensor.shape()[dimension]);
                strides.push(tensor.strides()[dimension]);
                dimension += 1;
            }
            continue;
        }
        let (size, stride) = (tensor.shape()[dimension], tensor.strides()[dimension]);
        match item.part {
            Part::Index(index) => {
                let place = if index < 0 { i128::from(index) + size as i128 } else { i128::from(index) };
                if !(0..size as i128).contains(&place) {
                    let message = format!("{index} is outside of dim {dimension}, which has size {size}");
                    return Err(failed(item.column, message));
                }
                offset += place * stride as i128;
            }
            Part::Range { start, stop, step } => {
                let (first, count) = places(start, stop, step, size);
                offset += if count > 0 { first * stride as i128 } else { 0 };
                shape.push(count);
                // A single place has no neighbour, however far away that would be.
                strides.push(if count > 1 { stride * step as isize } else { 1 });
            }
            Part::Ellipsis => {}
        }
        dimension += 1;
    }
    shape.extend_from_slice(&tensor.shape()[dimension..]);
    strides.extend_from_slice(&tensor.strides()[dimension..]);
    let offset = if shape.contains(&0) { 0 } else { offset };
    let offset = usize::try_from(offset).unwrap_or_default();
    Tensor::new(tensor.dtype(), shape, strides, offset, tensor.storage().clone())
        .map_err(|error| failed(0, error.to_string()))
}

/// The first place of a range and the number of them, as Python's `slice.indices` has them.
fn places(start: Option<i64>, stop: Option<i64>, step: i64, size: usize) -> (i128, usize) {
    let (size, step) = (size as i128, i128::from(step));
    let (lower, upper) = if step < 0 { (-1, size - 1) } else { (0, size) };
    let place = |given: i64| {
        let given = i128::from(given);
        (if given < 0 { given + size } else { given }).clamp(lower, upper)
    };
    let first = start.map_or(if step < 0 { upper } else { lower }, place);
    let end = stop.map_or(if step < 0 { lower } else { upper }, place);
    let span = if step < 0 { first - end } else { end - first };
    let count = if span <= 0 { 0 } else { (span - 1) / step.abs() + 1 };
    (first, usize::try_from(count).unwrap_or_default())
}

struct Reader<'a> {
    text: &'a str,
    letters: Vec<char>,
    place: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, letters: text.chars().collect(), place: 0 }
    }

    fn failed<T>(&self, column: usize, message: impl Into<String>) -> Result<T, SliceError> {
        Err(SliceError { text: self.text.to_string(), column, message: message.into() })
    }

    /// The next letter that is not a space.
    fn peek(&mut self) -> Option<char> {
        while self.letters.get(self.place).is_some_and(|letter| letter.is_whitespace()) {
            self.place += 1;
        }
        self.letters.get(self.place).copied()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.place += usize::from(found);
        found
    }

    fn items(mut self) -> Result<Vec<Item>, SliceError> {
        let bracket = self.take('[');
        let mut items: Vec<Item> = Vec::new();
        loop {
            match self.peek() {
                None if bracket => return self.failed(self.place, "']' is missing"),
                None => return Ok(items),
                Some(']') if bracket => break,
                Some(_) => {}
            }
            let item = self.item()?;
            if item.part == Part::Ellipsis && items.iter().any(|known| known.part == Part::Ellipsis) {
                return self.failed(item.column, "'...' can be there only once");
            }
            items.push(item);
            if !self.take(',') {
                match self.peek() {
                    Some(']') | None => {}
                    Some(other) => return self.failed(self.place, format!("',' is missing before '{other}'")),
                }
                if !bracket && let Some(other) = self.peek() {
                    return self.failed(self.place, format!("'{other}' has no '[' before it"));
                }
            }
        }
        self.place += 1;
        match self.peek() {
            Some(_) => self.failed(self.place, "nothing can follow the ']'"),
            None => Ok(items),
        }
    }

    fn item(&mut self) -> Result<Item, SliceError> {
        let first = self.peek();
        let column = self.place;
        if first == Some('.') {
            return match self.letters.get(column..column + 3) {
                Some(['.', '.', '.']) => {
                    self.place += 3;
                    Ok(Item { column, part: Part::Ellipsis })
                }
                _ => self.failed(column, "'.' has no meaning here; '...' stands for all dims left over"),
            };
        }
        let start = self.number()?;
        if !self.take(':') {
            return match (start, self.letters.get(column)) {
                (Some(index), _) => Ok(Item { column, part: Part::Index(index) }),
                (None, Some(',')) => {
                    self.failed(column, "a number, a range such as 3:7 or '...' is missing before ','")
                }
                (None, Some(other)) => self.failed(
                    column,
                    format!("'{other}' has no meaning here; a number, a range such as 3:7 or '...' can be here"),
                ),
                (None, None) => self.failed(column, "a number, a range such as 3:7 or '...' is missing"),
            };
        }
        let stop = self.number()?;
        let mut step = 1;
        if self.take(':') {
            self.peek();
            let place = self.place;
            step = self.number()?.unwrap_or(1);
            if step == 0 {
                return self.failed(place, "a step of 0 goes nowhere");
            }
        }
        Ok(Item { column, part: Part::Range { start, stop, step } })
    }

    fn number(&mut self) -> Result<Option<i64>, SliceError> {
        let sign = self.peek().filter(|letter| *letter == '-' || *letter == '+');
        let start = self.place;
        self.place += usize::from(sign.is_some());
        let digits: String = self.letters[self.place..].iter().take_while(|letter| letter.is_ascii_digit()).collect();
        self.place += digits.len();
        if digits.is_empty() {
            return match sign {
                Some(sign) => self.failed(start, format!("no number follows the '{sign}'")),
                None => Ok(None),
            };
        }
        let signed = if sign == Some('-') { format!("-{digits}") } else { digits };
        match signed.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => self.failed(start, "the number is too large"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpuemu_tensor::DType;

    fn tensor(shape: &[usize]) -> Tensor {
        let count: usize = shape.iter().product();
        let values: Vec<f64> = (0..count).map(|value| value as f64).collect();
        Tensor::from_f64(DType::F32, shape.to_vec(), &values).unwrap()
    }

    fn taken(shape: &[usize], text: &str) -> (Vec<usize>, Vec<f64>) {
        let part = select(&tensor(shape), text).unwrap_or_else(|error| panic!("{error}"));
        (part.shape().to_vec(), part.to_f64())
    }

    #[test]
    fn a_slice_takes_what_numpy_takes() {
        assert_eq!(taken(&[3, 4], ""), ((vec![3, 4]), (0..12).map(f64::from).collect()));
        assert_eq!(taken(&[3, 4], "[]").0, [3, 4]);
        assert_eq!(taken(&[3, 4], "[1]"), (vec![4], vec![4.0, 5.0, 6.0, 7.0]));
        assert_eq!(taken(&[3, 4], "[-1, 1:3]"), (vec![2], vec![9.0, 10.0]));
        assert_eq!(taken(&[3, 4], " [ : , ::2 , ] "), (vec![3, 2], vec![0.0, 2.0, 4.0, 6.0, 8.0, 10.0]));
        assert_eq!(taken(&[3, 4], "1, 2"), (vec![], vec![6.0]));
        assert_eq!(taken(&[5], "[::-1]"), (vec![5], vec![4.0, 3.0, 2.0, 1.0, 0.0]));
        assert_eq!(taken(&[5], "[3:0:-2]"), (vec![2], vec![3.0, 1.0]));
        assert_eq!(taken(&[5], "[-99:99]").0, [5]);
        assert_eq!(taken(&[5], "[4:1]"), (vec![0], vec![]));
        assert_eq!(taken(&[5], "[9223372036854775807:]").0, [0]);
        assert_eq!(taken(&[5], "[1::9223372036854775807]"), (vec![1], vec![1.0]));
        assert_eq!(taken(&[5], "[::-9223372036854775808]"), (vec![1], vec![4.0]));
        assert_eq!(taken(&[2, 2, 3], "[..., 1]"), (vec![2, 2], vec![1.0, 4.0, 7.0, 10.0]));
        assert_eq!(taken(&[2, 2, 3], "[0, ..., -1]"), (vec![2], vec![2.0, 5.0]));
        assert_eq!(taken(&[2], "[0, ...]"), (vec![], vec![0.0]));
        assert_eq!(taken(&[], "[...]"), (vec![], vec![0.0]));
        assert_eq!(taken(&[3, 0], "[2]"), (vec![0], vec![]));
    }

    #[test]
    fn a_mistake_is_pointed_at() {
        let message = |shape: &[usize], text: &str| select(&tensor(shape), text).unwrap_err().to_string();
        assert_eq!(
            message(&[3, 4], "[0, 4]"),
            "slice, column 5: 4 is outside of dim 1, which has size 4\n  [0, 4]\n      ^"
        );
        for (text, column, part) in [
            ("[-4]", 2, "-4 is outside of dim 0"),
            ("[0, 1, 2]", 8, "2 dims, but 3"),
            ("[0", 3, "']' is missing"),
            ("[0 1]", 4, "',' is missing before '1'"),
            ("0]", 2, "no '['"),
            ("[0] 1", 5, "nothing can follow"),
            ("[a]", 2, "'a' has no meaning"),
            ("[0, , 1]", 5, "missing before ','"),
            ("[..., ...]", 7, "only once"),
            ("[..]", 2, "'.' has no meaning"),
            ("[::0]", 4, "step of 0"),
            ("[1.5]", 3, "',' is missing before '.'"),
            ("[-]", 2, "no number follows"),
            ("[99999999999999999999]", 2, "too large"),
            ("[1:2:3:4]", 7, "',' is missing before ':'"),
            ("[[0]]", 2, "'[' has no meaning"),
            ("é", 1, "'é' has no meaning"),
        ] {
            let message = message(&[3, 4], text);
            let start = format!("slice, column {column}: ");
            assert!(message.starts_with(&start) && message.contains(part), "{text}: {message}");
        }
        assert!(message(&[0], "[0]").contains("size 0"));
    }
}
