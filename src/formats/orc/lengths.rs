//! The numbers of a LENGTH stream: how long texts, lists and maps are. The library makes room for what they say before
//! it sees whether there is as much, so they are looked at first.

/// Bits of a number by their code, as the specification of RLE version 2 has it.
const WIDTHS: [u32; 32] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 26, 28, 30, 32, 40, 48, 56,
    64,
];

/// Calls `each` with every number, not signed, in run length encoding of version 1 or 2. `None`: the stream is broken,
/// or `each` has had enough.
pub(super) fn each(bytes: &[u8], version_2: bool, mut each: impl FnMut(u64) -> Option<()>) -> Option<()> {
    let mut rest = bytes;
    while let Some((head, after)) = rest.split_first() {
        rest = after;
        if version_2 {
            run_2(*head, &mut rest, &mut each)?;
        } else {
            run_1(*head, &mut rest, &mut each)?;
        }
    }
    Some(())
}

fn byte(bytes: &mut &[u8]) -> Option<u8> {
    let (byte, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(*byte)
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = byte(bytes)?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn signed(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

fn run_1(head: u8, bytes: &mut &[u8], each: &mut impl FnMut(u64) -> Option<()>) -> Option<()> {
    if head >= 0x80 {
        // So many numbers as they are.
        for _ in 0..256 - u16::from(head) {
            each(varint(bytes)?)?;
        }
        return Some(());
    }
    let step = i64::from(byte(bytes)? as i8);
    let mut value = varint(bytes)?;
    for _ in 0..u16::from(head) + 3 {
        each(value)?;
        value = value.wrapping_add_signed(step);
    }
    Some(())
}

fn run_2(head: u8, bytes: &mut &[u8], each: &mut impl FnMut(u64) -> Option<()>) -> Option<()> {
    if head >> 6 == 0 {
        let value = big_endian(take(bytes, usize::from(head >> 3 & 7) + 1)?);
        return (0..(head & 7) + 3).try_for_each(|_| each(value));
    }
    let code = usize::from(head >> 1 & 0x1f);
    let count = (usize::from(head & 1) << 8 | usize::from(byte(bytes)?)) + 1;
    let width = *WIDTHS.get(code)?;
    match head >> 6 {
        1 => packed(bytes, width, count)?.into_iter().try_for_each(each),
        2 => patched(bytes, width, count)?.into_iter().try_for_each(each),
        _ => {
            let mut value = varint(bytes)?;
            each(value)?;
            if count == 1 {
                varint(bytes)?;
                return Some(());
            }
            let first = signed(varint(bytes)?);
            value = value.wrapping_add_signed(first);
            each(value)?;
            // Code 0 says that all steps are the first.
            let steps =
                if code == 0 { vec![first.unsigned_abs(); count - 2] } else { packed(bytes, width, count - 2)? };
            for step in steps {
                value = if first < 0 { value.wrapping_sub(step) } else { value.wrapping_add(step) };
                each(value)?;
            }
            Some(())
        }
    }
}

/// Small numbers of one width, and patches for those few that are large.
fn patched(bytes: &mut &[u8], width: u32, count: usize) -> Option<Vec<u64>> {
    let (third, fourth) = (byte(bytes)?, byte(bytes)?);
    let base = take(bytes, usize::from(third >> 5) + 1)?;
    let patch_width = *WIDTHS.get(usize::from(third & 0x1f))?;
    let gap_width = u32::from(fourth >> 5) + 1;
    let patches = usize::from(fourth & 0x1f);
    let negative = base.first().is_some_and(|byte| *byte >= 0x80);
    let base = big_endian(base) & (u64::MAX >> (64 - (base.len() as u32 * 8)) >> 1);
    let mut values = packed(bytes, width, count)?;
    let entry_width = WIDTHS.iter().copied().find(|known| *known >= patch_width + gap_width)?;
    let mut at = 0_usize;
    for entry in packed(bytes, entry_width, patches)? {
        at += usize::try_from(entry.checked_shr(patch_width).unwrap_or(0)).ok()?;
        let patch = entry & (u64::MAX >> (64 - patch_width));
        if patch > 0 {
            *values.get_mut(at)? |= patch.checked_shl(width)?;
        }
    }
    let add = |value: &mut u64| *value = if negative { value.wrapping_sub(base) } else { value.wrapping_add(base) };
    values.iter_mut().for_each(add);
    Some(values)
}

fn big_endian(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// Numbers of so many bits, the highest first, up to the end of a byte.
fn packed(bytes: &mut &[u8], width: u32, count: usize) -> Option<Vec<u64>> {
    let bits = count * width as usize;
    let packed = take(bytes, bits.div_ceil(8))?;
    let number = |index: usize| {
        let start = index * width as usize;
        let bits = start..start + width as usize;
        bits.fold(0, |value, bit| value << 1 | u64::from(packed[bit / 8] >> (7 - bit % 8) & 1))
    };
    Some((0..count).map(number).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8], version_2: bool) -> Option<Vec<u64>> {
        let mut all = Vec::new();
        each(bytes, version_2, |value| {
            all.push(value);
            Some(())
        })?;
        Some(all)
    }

    /// The examples of the specification.
    #[test]
    fn runs_of_both_versions_are_read() {
        assert_eq!(all(&[0x61, 0x00, 0x07], false), Some(vec![7; 100]));
        assert_eq!(all(&[0x61, 0xff, 0x64], false), Some((1..=100).rev().collect()));
        assert_eq!(all(&[0xfb, 2, 3, 6, 7, 11], false), Some(vec![2, 3, 6, 7, 11]));
        assert_eq!(all(&[0x0a, 0x27, 0x10], true), Some(vec![10_000; 5]));
        let direct = [0x5e, 0x03, 0x5c, 0xa1, 0xab, 0x1e, 0xde, 0xad, 0xbe, 0xef];
        assert_eq!(all(&direct, true), Some(vec![23_713, 43_806, 57_005, 48_879]));
        let patched = [
            0x8e, 0x13, 0x2b, 0x21, 0x07, 0xd0, 0x1e, 0x00, 0x14, 0x70, 0x28, 0x32, 0x3c, 0x46, 0x50, 0x5a, 0x64, 0x6e,
            0x78, 0x82, 0x8c, 0x96, 0xa0, 0xaa, 0xb4, 0xbe, 0xfc, 0xe8,
        ];
        let expected = [
            2030, 2000, 2020, 1_000_000, 2040, 2050, 2060, 2070, 2080, 2090, 2100, 2110, 2120, 2130, 2140, 2150, 2160,
            2170, 2180, 2190,
        ];
        assert_eq!(all(&patched, true), Some(expected.to_vec()));
        let delta = [0xc6, 0x09, 0x02, 0x02, 0x22, 0x42, 0x42, 0x46];
        assert_eq!(all(&delta, true), Some(vec![2, 3, 5, 7, 11, 13, 17, 19, 23, 29]));
    }

    #[test]
    fn what_is_cut_off_is_broken() {
        let delta = [0xc6, 0x09, 0x02, 0x02, 0x22, 0x42, 0x42, 0x46];
        for length in 1..delta.len() {
            assert_eq!(all(&delta[..length], true), None);
        }
    }

    #[test]
    fn numbers_of_more_than_64_bits_and_patches_of_none_are_broken() {
        let long = |last| [&[0xff][..], &[0x80; 9], &[last]].concat();
        assert_eq!(all(&long(1), false), Some(vec![1 << 63]));
        assert_eq!(all(&long(0x80), false), None);
        // One value of one bit, and a patch of one bit for it: by its gap, for the one behind it.
        let patched = |patch| all(&[0x80, 0, 0, 1, 5, 0, patch], true);
        assert_eq!((patched(0x40), patched(0xc0)), (Some(vec![7]), None));
        // For a value of 64 bits there are no higher ones; a patch of 64 bits and its gap are no number.
        assert_eq!(all(&[&[0xbe, 0, 0, 1, 5][..], &[0; 8], &[0x40]].concat(), true), None);
        assert_eq!(all(&[&[0x80, 0, 0x1f, 1, 5, 0][..], &[0; 8]].concat(), true), None);
    }

    #[test]
    fn a_delta_of_one_number_has_a_step_that_nobody_takes() {
        assert_eq!(all(&[0xc0, 0, 2, 2, 0x0a, 0x27, 0x10], true), Some([&[2][..], &[10_000; 5]].concat()));
    }
}
