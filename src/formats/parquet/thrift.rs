//! The little of Thrift's compact protocol that is needed to look at a footer and at the headers of pages before the
//! library does: it believes the lengths of lists, and follows nesting however deep.

/// Levels of structs and lists.
const MOST_LEVELS: usize = 32;
/// Values in one struct, all levels together.
const MOST_NODES: usize = 1 << 20;

/// A value, as far as anyone here asks for it.
#[derive(Debug, PartialEq)]
pub(super) enum Value {
    /// A number of any width.
    Int(i64),
    /// True or false, where it is a field; elements of lists are nobody's question.
    Boolean(bool),
    /// A list of structs.
    Structs(Vec<Struct>),
    /// A struct.
    Struct(Struct),
    /// Anything else.
    Other,
}

/// The fields of a struct, with their numbers.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Struct(Vec<(i16, Value)>);

impl Struct {
    fn get(&self, field: i16) -> Option<&Value> {
        self.0.iter().find(|(number, _)| *number == field).map(|(_, value)| value)
    }

    /// A field that is a number of 32 bits. `Some(None)`: there is none; `None`: there is something else, of which the
    /// library would make a number of its own.
    pub(super) fn int(&self, field: i16) -> Option<Option<i32>> {
        match self.get(field) {
            None => Some(None),
            Some(Value::Int(value)) => i32::try_from(*value).ok().map(Some),
            Some(_) => None,
        }
    }

    /// The same of a field that is true or false.
    pub(super) fn boolean(&self, field: i16) -> Option<Option<bool>> {
        match self.get(field) {
            None => Some(None),
            Some(Value::Boolean(value)) => Some(Some(*value)),
            Some(_) => None,
        }
    }

    /// The same of a field that is a struct.
    pub(super) fn structure(&self, field: i16) -> Option<Option<&Self>> {
        match self.get(field) {
            None => Some(None),
            Some(Value::Struct(value)) => Some(Some(value)),
            Some(_) => None,
        }
    }

    /// The same of a field that is a list of structs.
    pub(super) fn structs(&self, field: i16) -> Option<Option<&[Self]>> {
        match self.get(field) {
            None => Some(None),
            Some(Value::Structs(values)) => Some(Some(values)),
            Some(_) => None,
        }
    }

    /// Whether a number stands before two fields. The library takes the last of them, and here it is the first.
    fn repeats(&self) -> bool {
        if self.0.is_sorted_by(|(first, _), (second, _)| first < second) {
            return false;
        }
        let mut numbers: Vec<i16> = self.0.iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        numbers.windows(2).any(|pair| pair.first() == pair.last())
    }
}

/// Reads the struct that the bytes begin with; answers it and how many bytes it is. `None`: there is none.
pub(super) fn read_struct(bytes: &[u8]) -> Option<(Struct, usize)> {
    let mut reader = Reader { bytes, nodes: 0 };
    let read = reader.structure(0)?;
    Some((read, bytes.len() - reader.bytes.len()))
}

struct Reader<'a> {
    bytes: &'a [u8],
    nodes: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*byte)
    }

    fn skip(&mut self, bytes: usize) -> Option<()> {
        self.bytes = self.bytes.get(bytes..)?;
        Some(())
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn zigzag(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn structure(&mut self, level: usize) -> Option<Struct> {
        let (mut fields, mut number) = (Vec::new(), 0_i16);
        loop {
            let head = self.byte()?;
            if head == 0 {
                let read = Struct(fields);
                return (!read.repeats()).then_some(read);
            }
            number = match head >> 4 {
                0 => i16::try_from(self.zigzag()?).ok()?,
                step => number.checked_add(i16::from(step))?,
            };
            // Whether it is true stands in the type itself.
            let value = match head & 0xf {
                kind @ (1 | 2) => Value::Boolean(kind == 1),
                kind => self.value(kind, level + 1)?,
            };
            fields.push((number, value));
        }
    }

    fn value(&mut self, kind: u8, level: usize) -> Option<Value> {
        self.nodes += 1;
        if level > MOST_LEVELS || self.nodes > MOST_NODES {
            return None;
        }
        Some(match kind {
            1..=3 => self.skip(1).map(|()| Value::Other)?,
            4..=6 => Value::Int(self.zigzag()?),
            7 => self.skip(8).map(|()| Value::Other)?,
            8 => {
                let length = usize::try_from(self.varint()?).ok()?;
                self.skip(length).map(|()| Value::Other)?
            }
            9 | 10 => self.list(level)?,
            11 => self.map(level)?,
            12 => Value::Struct(self.structure(level)?),
            13 => self.skip(16).map(|()| Value::Other)?,
            _ => return None,
        })
    }

    /// Each element takes at least a byte, so a length that is a lie ends with the bytes.
    fn list(&mut self, level: usize) -> Option<Value> {
        let head = self.byte()?;
        let length = match head >> 4 {
            15 => self.varint()?,
            short => u64::from(short),
        };
        let kind = head & 0xf;
        if kind != 12 {
            for _ in 0..length {
                self.value(kind, level + 1)?;
            }
            return Some(Value::Other);
        }
        let mut structs = Vec::new();
        for _ in 0..length {
            self.nodes += 1;
            if level > MOST_LEVELS || self.nodes > MOST_NODES {
                return None;
            }
            structs.push(self.structure(level + 1)?);
        }
        Some(Value::Structs(structs))
    }

    fn map(&mut self, level: usize) -> Option<Value> {
        let length = self.varint()?;
        if length > 0 {
            let kinds = self.byte()?;
            for _ in 0..length {
                self.value(kinds >> 4, level + 1)?;
                self.value(kinds & 0xf, level + 1)?;
            }
        }
        Some(Value::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_numbers() {
        // 1: i32 3, 2: [{1: i64 -1}], 20: "ab", 21: true
        let bytes = [0x15, 6, 0x19, 0x1c, 0x16, 1, 0, 0x08, 40, 2, b'a', b'b', 0x11, 0, 99];
        let (read, length) = read_struct(&bytes).unwrap();
        assert_eq!(length, bytes.len() - 1);
        assert_eq!((read.int(1), read.int(3)), (Some(Some(3)), Some(None)));
        assert_eq!(read.boolean(21), Some(Some(true)));
        assert_eq!(read.structs(2).unwrap().unwrap()[0].int(1), Some(Some(-1)));
    }

    #[test]
    fn a_field_that_stands_twice_or_is_of_another_kind_is_none() {
        // 1: i32 3, then 1: i32 4 by its whole number.
        assert_eq!(read_struct(&[0x15, 6, 0x05, 2, 8, 0]), None);
        // 2: i32, 1: i32: in no order, which is allowed.
        assert!(read_struct(&[0x25, 6, 0x05, 2, 8, 0]).is_some());
        // 1: "ab", 2: i64 2^32
        let (read, _) = read_struct(&[0x18, 2, b'a', b'b', 0x16, 0x80, 0x80, 0x80, 0x80, 0x20, 0]).unwrap();
        assert_eq!((read.int(1), read.int(2)), (None, None));
        assert!(read.structure(1).is_none() && read.structs(1).is_none() && read.boolean(1).is_none());
    }

    #[test]
    fn lists_longer_than_the_bytes_and_endless_nesting_are_none() {
        assert_eq!(read_struct(&[0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0]), None);
        assert_eq!(read_struct(&[0x1c; 100_000]), None);
        assert_eq!(read_struct(&[0x19, 0x19].repeat(100_000)), None);
        for length in 0..7 {
            assert_eq!(read_struct(&[0x15, 6, 0x19, 0x1c, 0x16, 1, 0, 0][..length]), None);
        }
    }
}
