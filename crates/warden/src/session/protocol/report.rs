//! What a shell says back.

/// The longest report that means anything: twenty digits of a sequence number, a separator, three
/// of a status.
pub(crate) const MAX_REPORT: usize = 24;

/// What a shell says about the line it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// The input of the command is open on the shell's side.
    Reading,
    /// The command ended with this status; its output is complete.
    Finished(u8),
    /// The shell waits for the next line, and the answer is complete.
    Idle,
}

/// Reads one line, without its newline, as a report about `sequence`.
///
/// Every process of the sandbox can write here. A line that is not exactly what the shell would
/// have written for this sequence number says nothing.
pub(crate) fn parse_status(line: &[u8], sequence: u64) -> Option<Report> {
    let text = std::str::from_utf8(line).ok().filter(|text| text.len() <= MAX_REPORT)?;
    let rest = text.strip_prefix(&sequence.to_string())?;
    match rest {
        "." => return Some(Report::Idle),
        "<" => return Some(Report::Reading),
        _ => {}
    }
    let digits = rest.strip_prefix(':')?;
    let status: u8 = digits.parse().ok()?;
    (status.to_string() == digits).then_some(Report::Finished(status))
}

/// Cuts the bytes of the status FIFO into lines and keeps a bounded rest.
#[derive(Clone, Debug, Default)]
pub(crate) struct StatusReader {
    rest: Vec<u8>,
    overlong: bool,
}

impl StatusReader {
    /// The reports about `sequence` that `bytes` completed.
    pub(crate) fn push(&mut self, bytes: &[u8], sequence: u64) -> Vec<Report> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_sequence_number_counts() {
        assert_eq!(parse_status(b"12:0", 12), Some(Report::Finished(0)));
        assert_eq!(parse_status(b"12:255", 12), Some(Report::Finished(255)));
        assert_eq!(parse_status(b"12.", 12), Some(Report::Idle));
        assert_eq!(parse_status(b"12<", 12), Some(Report::Reading));
        for forged in ["11:0", "112:0", "12:256", "12:-1", "12:+1", "12:01", "12:", "12", ""] {
            assert_eq!(parse_status(forged.as_bytes(), 12), None, "{forged}");
        }
        assert_eq!(parse_status(b"12:\xff", 12), None);
        let longest = format!("{}:255", u64::MAX);
        assert_eq!(longest.len(), MAX_REPORT);
        assert_eq!(parse_status(longest.as_bytes(), u64::MAX), Some(Report::Finished(255)));
    }

    #[test]
    fn reports_survive_any_cut_and_any_noise() {
        let noise = [b"x".repeat(10_000), b"\n5:1\n7:3\n\0\n7.\n".to_vec()].concat();
        let mut reader = StatusReader::default();
        let one = |byte: &u8| reader.push(&[*byte], 7);
        let reports: Vec<Report> = noise.iter().flat_map(one).collect();
        assert_eq!(reports, [Report::Finished(3), Report::Idle]);
    }

    #[test]
    fn an_endless_line_is_kept_within_bounds() {
        let mut reader = StatusReader::default();
        assert_eq!(reader.push(&[b'7'; 100_000], 7), []);
        assert!(reader.rest.len() <= MAX_REPORT);
        assert_eq!(reader.push(b"\n7:0\n", 7), [Report::Finished(0)]);
    }
}
