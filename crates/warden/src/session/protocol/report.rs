//! What a shell says back.

/// The longest report that means anything: twenty digits of a sequence number, a separator, three
/// of a status.
pub const MAX_REPORT: usize = 24;

/// What a shell says about the line it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// The command ended with this status; its output is complete.
    Finished(u8),
    /// The shell waits for the next line, and the answer is complete.
    Idle,
}

/// Reads one line, without its newline, as a report about `sequence`.
///
/// Every process of the sandbox can write here. A line that is not exactly what the shell would
/// have written for this sequence number says nothing.
#[must_use]
pub fn parse_status(line: &[u8], sequence: u64) -> Option<Report> {
    let text = std::str::from_utf8(line).ok().filter(|text| text.len() <= MAX_REPORT)?;
    let rest = text.strip_prefix(&sequence.to_string())?;
    if rest == "." {
        return Some(Report::Idle);
    }
    let digits = rest.strip_prefix(':')?;
    let status: u8 = digits.parse().ok()?;
    (status.to_string() == digits).then_some(Report::Finished(status))
}

/// Cuts the bytes of the status FIFO into lines and keeps a bounded rest.
#[derive(Clone, Debug, Default)]
pub struct StatusReader {
    rest: Vec<u8>,
    overlong: bool,
}

impl StatusReader {
    /// The reports about `sequence` that `bytes` completed.
    pub fn push(&mut self, bytes: &[u8], sequence: u64) -> Vec<Report> {
        let mut reports = Vec::new();
        for &byte in bytes {
            match byte {
                b'\n' => reports.extend(self.end_line(sequence)),
                _ if self.rest.len() == MAX_REPORT => self.overlong = true,
                other => self.rest.push(other),
            }
        }
        reports
    }

    fn end_line(&mut self, sequence: u64) -> Option<Report> {
        let line = std::mem::take(&mut self.rest);
        let overlong = std::mem::take(&mut self.overlong);
        if overlong { None } else { parse_status(&line, sequence) }
    }
}

/// The directory in an answer to [`ask_directory_line`]. Newlines within the name are its own.
#[must_use]
pub fn parse_directory(answer: &[u8]) -> Option<&[u8]> {
    answer.strip_suffix(b"\n").filter(|path| path.starts_with(b"/"))
}

