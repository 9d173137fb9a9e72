//! The hunks of a unified diff.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, DiffTag};

const CONTEXT: usize = 3;

/// After this the rest is shown as replaced: correct, if less readable.
const PATIENCE: Duration = Duration::from_secs(2);

/// As git decides it: no NUL near the start.
pub(super) fn is_text(bytes: &[u8]) -> bool {
    !bytes[..bytes.len().min(8000)].contains(&0)
}

pub(super) fn write(out: &mut impl Write, old: &[u8], new: &[u8]) -> io::Result<()> {
    // Only a line feed ends a line for `patch`, whatever else libraries take for a line.
    let old: Vec<&[u8]> = old.split_inclusive(|byte| *byte == b'\n').collect();
    let new: Vec<&[u8]> = new.split_inclusive(|byte| *byte == b'\n').collect();
    let deadline = Some(Instant::now() + PATIENCE);
    let ops = similar::capture_diff_slices_deadline(Algorithm::Myers, &old, &new, deadline);
    for group in similar::group_diff_ops(ops, CONTEXT) {
        write_hunk(out, &group, &old, &new)?;
    }
    Ok(())
}

fn write_hunk(
    out: &mut impl Write,
    ops: &[DiffOp],
    old: &[&[u8]],
    new: &[&[u8]],
) -> io::Result<()> {
    let (Some(first), Some(last)) = (ops.first(), ops.last()) else { return Ok(()) };
    let before = first.old_range().start..last.old_range().end;
    let after = first.new_range().start..last.new_range().end;
    writeln!(out, "@@ -{} +{} @@", position(&before), position(&after))?;
    for op in ops {
        if op.tag() == DiffTag::Equal {
            write_lines(out, b' ', &old[op.old_range()])?;
            continue;
        }
        write_lines(out, b'-', &old[op.old_range()])?;
        write_lines(out, b'+', &new[op.new_range()])?;
    }
    Ok(())
}

/// Lines count from one; an empty range is named by the line before it.
fn position(lines: &std::ops::Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        count => format!("{},{count}", lines.start + 1),
    }
}

fn write_lines(out: &mut impl Write, sign: u8, lines: &[&[u8]]) -> io::Result<()> {
    for line in lines {
        out.write_all(&[sign])?;
        out.write_all(line)?;
        if !line.ends_with(b"\n") {
            out.write_all(b"\n\\ No newline at end of file\n")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    fn diff(old: &str, new: &str) -> String {
        let mut out = Vec::new();
        super::write(&mut out, old.as_bytes(), new.as_bytes()).expect("memory is writable");
        String::from_utf8(out).expect("both sides are text")
    }

    #[test]
    fn a_new_file_is_all_additions() {
        assert_eq!(diff("", "a\nb\n"), "@@ -0,0 +1,2 @@\n+a\n+b\n");
    }

    #[test]
    fn a_missing_last_newline_is_noted() {
        let expected = "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n";
        assert_eq!(diff("a", "a\n"), expected);
    }

    #[test]
    fn a_carriage_return_does_not_end_a_line() {
        assert_eq!(diff("a\rb\n", "a\rc\n"), "@@ -1 +1 @@\n-a\rb\n+a\rc\n");
    }
}
