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

    /// A field that is a number.
    pub(super) fn int(&self, field: i16) -> Option<i64> {
        match self.get(field)? {
            Value::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// A field that is a struct.
    pub(super) fn structure(&self, field: i16) -> Option<&Self> {
        match self.get(field)? {
            Value::Struct(value) => Some(value),
            _ => None,
        }
    }

    /// A field that is a list of structs.
    pub(super) fn structs(&self, field: i16) -> Option<&[Self]> {
        match self.get(field)? {
            Value::Structs(values) => Some(values),
            _ => None,
        }
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
                return Some(Struct(fields));
            }
            number = match head >> 4 {
                0 => i16::try_from(self.zigzag()?).ok()?,
                step => number.checked_add(i16::from(step))?,
            };
            // Whether it is true stands in the type itself.
            let value = if matches!(head & 0xf, 1 | 2) { Value::Other } else { self.value(head & 0xf, level + 1)? };
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
        assert_eq!((read.int(1), read.int(2), read.int(20)), (Some(3), None, None));
        assert_eq!(read.structs(2).unwrap()[0].int(1), Some(-1));
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
