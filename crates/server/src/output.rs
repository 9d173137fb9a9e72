//! What a command printed, within bounds: head and tail are kept, the middle goes.

use bytes::Bytes;
use std::collections::VecDeque;

/// The output of one stream.
#[derive(Debug)]
pub(crate) struct Kept {
    cap: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

impl Kept {
    pub(crate) fn new(cap: usize) -> Self {
        Self { cap, head: Vec::new(), tail: VecDeque::new(), total: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = (self.cap / 2).saturating_sub(self.head.len());
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        let most = self.cap - self.cap / 2;
        let rest = &rest[rest.len().saturating_sub(most)..];
        let surplus = (self.tail.len() + rest.len()).saturating_sub(most);
        self.tail.drain(..surplus);
        self.tail.extend(rest);
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.total > (self.head.len() + self.tail.len()) as u64
    }

    /// The last bytes, at most so many.
    pub(crate) fn last(&self, most: usize) -> Vec<u8> {
        let all: Vec<u8> = self.head.iter().chain(&self.tail).copied().collect();
        all[all.len().saturating_sub(most)..].to_vec()
    }

    pub(crate) fn into_bytes(self) -> Bytes {
        let mut all = self.head;
        all.extend(self.tail);
        all.into()
    }

    /// As text that a reader can make sense of: what is not UTF-8 is replaced, and a line in the
    /// gap says how much is missing. Never longer than `most` bytes.
    pub(crate) fn into_text(self, most: usize) -> String {
        let missing = self.total - (self.head.len() + self.tail.len()) as u64;
        let tail: Vec<u8> = self.tail.into_iter().collect();
        if missing == 0 {
            let whole = [self.head, tail].concat();
            return shortened(String::from_utf8_lossy(&whole).into_owned(), most);
        }
        let (head, tail) = (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(&tail));
        let note = format!("\n[ringfence: {missing} bytes left out]\n");
        shortened(format!("{head}{note}{tail}"), most)
    }
}

/// Replacing what is not UTF-8 can make three bytes of one.
fn shortened(text: String, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    let note = "\n[ringfence: more was left out]\n";
    let half = most.saturating_sub(note.len()) / 2;
    let head = text.floor_char_boundary(half);
    let tail = text.ceil_char_boundary(text.len() - half);
    format!("{}{note}{}", &text[..head], &text[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(cap: usize, pieces: &[&[u8]]) -> Kept {
        let mut kept = Kept::new(cap);
        pieces.iter().for_each(|piece| kept.push(piece));
        kept
    }

    #[test]
    fn what_fits_is_whole() {
        let all = kept(10, &[b"hello", b" ", b"you"]);
        assert!(!all.is_cut());
        assert_eq!(all.into_text(100), "hello you");
    }

    #[test]
    fn head_and_tail_are_kept_and_the_gap_is_told() {
        let long = kept(8, &[b"0123", b"4567", b"89", &[b'x'; 1000], b"abcd"]);
        assert!(long.is_cut());
        assert_eq!(long.total(), 1014);
        assert_eq!(long.last(2), b"cd");
        let text = long.into_text(1000);
        assert_eq!(text, "0123\n[ringfence: 1006 bytes left out]\nabcd");
    }

    #[test]
    fn replaced_bytes_do_not_make_it_longer_than_asked() {
        let text = kept(3000, &[&[0xff; 3000]]).into_text(1000);
        assert!(text.len() <= 1000 && text.contains("left out"), "{}", text.len());
    }
}
