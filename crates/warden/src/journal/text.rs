//! Bytes in JSON without loss: paths, arguments and command texts need not be UTF-8.

use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// More than this of one text is not kept: an entry must stay small whatever a program asks for.
const TEXT_KEPT: usize = 16 << 10;
/// More than this of a list of texts is not kept.
const LIST_KEPT: usize = 64 << 10;
const ITEMS_KEPT: usize = 1024;

/// Bytes as the journal holds them.
///
/// In JSON it is a plain string if it is UTF-8 and complete. Otherwise it is an object with `text`
/// and, if the bytes are not UTF-8, `"escaped": true` (then `\\` stands for a backslash and `\xNN`
/// for a byte), and if only the beginning was kept `"cut": true` and the full `length` in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Text {
    text: String,
    escaped: bool,
    full_length: Option<u64>,
}

impl Text {
    pub fn new(bytes: impl AsRef<[u8]>) -> Self {
        Self::bounded(bytes.as_ref(), TEXT_KEPT)
    }

    fn bounded(bytes: &[u8], limit: usize) -> Self {
        let kept = &bytes[..cut_point(bytes, limit)];
        let full_length = (kept.len() < bytes.len()).then_some(bytes.len() as u64);
        match std::str::from_utf8(kept) {
            Ok(text) => Self { text: text.to_owned(), escaped: false, full_length },
            Err(_) => Self { text: escape(kept), escaped: true, full_length },
        }
    }

    /// The bytes that were kept.
    pub fn bytes(&self) -> Vec<u8> {
        match self.escaped {
            true => unescape(&self.text),
            false => self.text.clone().into_bytes(),
        }
    }

    /// The full length in bytes if only the beginning was kept.
    pub fn cut_from(&self) -> Option<u64> {
        self.full_length
    }
}

impl<B: AsRef<[u8]>> From<B> for Text {
    fn from(bytes: B) -> Self {
        Self::new(bytes)
    }
}

/// Where to cut so that a character is not torn: text that is cut should still be text.
fn cut_point(bytes: &[u8], limit: usize) -> usize {
    if bytes.len() <= limit {
        return bytes.len();
    }
    let is_boundary = |at: &usize| bytes[*at] & 0xc0 != 0x80;
    (limit.saturating_sub(3)..=limit).rev().find(is_boundary).unwrap_or(limit)
}

fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        text.push_str(&chunk.valid().replace('\\', r"\\"));
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
    }
    text
}

/// The reverse of `escape`. Text that was not made by it is taken as it is: this is for showing.
fn unescape(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((byte, used)) = next_byte(rest) {
        bytes.push(byte);
        rest = &rest[used..];
    }
    bytes
}

fn next_byte(rest: &[u8]) -> Option<(u8, usize)> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    Some(match rest {
        [b'\\', b'\\', ..] => (b'\\', 2),
        [b'\\', b'x', high, low, ..] => match (digit(*high), digit(*low)) {
            (Some(high), Some(low)) => (high << 4 | low, 4),
            _ => (b'\\', 1),
        },
        [byte, ..] => (*byte, 1),
        [] => return None,
    })
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !self.escaped && self.full_length.is_none() {
            return serializer.serialize_str(&self.text);
        }
        let mut object = serializer.serialize_struct("Text", 4)?;
        object.serialize_field("text", &self.text)?;
        if self.escaped {
            object.serialize_field("escaped", &true)?;
        }
        if let Some(length) = self.full_length {
            object.serialize_field("cut", &true)?;
            object.serialize_field("length", &length)?;
        }
        object.end()
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum StoredText {
    Plain(String),
    Marked {
        text: String,
        #[serde(default)]
        escaped: bool,
        length: Option<u64>,
    },
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match StoredText::deserialize(deserializer)? {
            StoredText::Plain(text) => Self { text, escaped: false, full_length: None },
            StoredText::Marked { text, escaped, length } => {
                Self { text, escaped, full_length: length }
            }
        })
    }
}

/// A list of texts, such as arguments or names of variables. In JSON it is a plain array if it is
/// complete, and otherwise an object with the first `items` and the `total` number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "StoredList", into = "StoredList")]
pub struct List {
    items: Vec<Text>,
    total: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredList {
    Complete(Vec<Text>),
    Cut { items: Vec<Text>, total: u64 },
}

impl List {
    pub fn new<B: AsRef<[u8]>>(items: impl IntoIterator<Item = B>) -> Self {
        let (mut list, mut room) = (Self::default(), LIST_KEPT);
        for item in items {
            list.total += 1;
            if room > 0 && list.items.len() < ITEMS_KEPT {
                let limit = room.min(TEXT_KEPT);
                list.items.push(Text::bounded(item.as_ref(), limit));
                room = room.saturating_sub(item.as_ref().len());
            }
        }
        list
    }

    pub fn items(&self) -> &[Text] {
        &self.items
    }

    /// How many there were, kept or not.
    pub fn total(&self) -> u64 {
        self.total
    }
}

impl From<StoredList> for List {
    fn from(stored: StoredList) -> Self {
        match stored {
            StoredList::Complete(items) => Self { total: items.len() as u64, items },
            StoredList::Cut { items, total } => Self { items, total },
        }
    }
}

impl From<List> for StoredList {
    fn from(List { items, total }: List) -> Self {
        match items.len() as u64 == total {
            true => Self::Complete(items),
            false => Self::Cut { items, total },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_str, json, to_string, to_value};

    fn survives(bytes: &[u8]) {
        let text = Text::new(bytes);
        let back: Text = from_str(&to_string(&text).unwrap()).unwrap();
        assert_eq!(back, text);
        assert_eq!(back.bytes(), bytes);
    }

    #[test]
    fn every_name_comes_back_as_it_was() {
        for bytes in
            [&b"/a b"[..], b"", "/\u{e9}t\u{e9}\\x41".as_bytes(), b"/a\\xff", b"/\xff\\x41\\"]
        {
            survives(bytes);
        }
        survives(&(0..=255).collect::<Vec<u8>>());
    }

    #[test]
    fn what_is_not_utf8_is_escaped_and_says_so() {
        assert_eq!(to_value(Text::new("/a\\b")).unwrap(), json!("/a\\b"));
        let odd = to_value(Text::new(b"/a\\\xff")).unwrap();
        assert_eq!(odd, json!({ "text": r"/a\\\xff", "escaped": true }));
    }

    #[test]
    fn long_text_is_cut_at_a_character_and_names_its_length() {
        let long = format!("a{}", "\u{e9}".repeat(TEXT_KEPT));
        let text = Text::new(&long);
        assert_eq!(text.cut_from(), Some(long.len() as u64));
        let value = to_value(&text).unwrap();
        assert_eq!(value["cut"], true);
        assert_eq!(value.get("escaped"), None);
        assert_eq!(text.bytes().len(), TEXT_KEPT - 1);
    }

    #[test]
    fn a_list_that_does_not_fit_says_how_long_it_was() {
        let short = List::new(["a", "b"]);
        assert_eq!(to_value(&short).unwrap(), json!(["a", "b"]));
        let long = List::new(std::iter::repeat_n("x".repeat(1000), 100));
        assert!(long.items().len() < 70);
        assert_eq!(to_value(&long).unwrap()["total"], 100);
        assert_eq!(from_str::<List>(&to_string(&long).unwrap()).unwrap(), long);
        assert_eq!(List::new(std::iter::repeat_n("", 5000)).items().len(), ITEMS_KEPT);
    }
}
