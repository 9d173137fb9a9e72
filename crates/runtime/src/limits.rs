//! How much a sandbox may use, and the forms in which a person writes it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Limits of one sandbox as a whole. What is `None` is not limited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Bytes, swap included where the kernel counts it.
    pub memory: Option<u64>,
    /// Microseconds of processor time per 100 ms, over all processors.
    pub cpu_quota: Option<u64>,
    /// The share of a busy processor, relative to 1024 for everybody else.
    pub cpu_shares: Option<u64>,
    /// Processes and threads, beside those that are ours.
    pub pids: Option<u64>,
}

impl Limits {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// With room for processes of ours, which are counted too.
    pub fn beside(self, ours: u64) -> Self {
        Self { pids: self.pids.map(|most| most.saturating_add(ours)), ..self }
    }
}

/// The period that [`Limits::cpu_quota`] is a part of, in microseconds.
pub const CPU_PERIOD: u64 = 100_000;

/// Below this not even init starts, and the kernel's answer would be a puzzle.
const LEAST_MEMORY: u64 = 4 << 20;

/// The kernel refuses quotas below a millisecond.
const LEAST_QUOTA: u64 = 1_000;

/// A text that is not a limit. The sentence names it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadLimit(String);

/// `512M`, `1G`, `1.5G`, `64k` (powers of 1024, with or without `iB` or `B`), or bytes.
pub fn parse_memory(text: &str) -> Result<u64, BadLimit> {
    let wrong = || {
        BadLimit(format!(
            "'{text}' is not an amount of memory: write it like 512M, 1.5G or 1048576"
        ))
    };
    let (number, unit) = split_unit(text).ok_or_else(wrong)?;
    let factor = memory_unit(unit).ok_or_else(wrong)?;
    let bytes = scaled(number, factor).ok_or_else(wrong)?;
    match bytes {
        LEAST_MEMORY.. => Ok(bytes),
        _ => Err(BadLimit(format!("'{text}' is too little memory: the least is 4M"))),
    }
}

fn memory_unit(unit: &str) -> Option<u64> {
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return None,
    };
    Some(1 << shift)
}

/// `2`, `1.5`, `0.25`: processors, as the quota of [`Limits::cpu_quota`].
pub fn parse_cpus(text: &str) -> Result<u64, BadLimit> {
    let wrong =
        || BadLimit(format!("'{text}' is not a number of processors: write it like 2 or 1.5"));
    let quota = scaled(text, CPU_PERIOD).ok_or_else(wrong)?;
    match quota {
        LEAST_QUOTA.. => Ok(quota),
        _ => Err(BadLimit(format!("'{text}' is too little of a processor: the least is 0.01"))),
    }
}

/// `100`: processes and threads.
pub fn parse_pids(text: &str) -> Result<u64, BadLimit> {
    match text.parse() {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(BadLimit(format!("'{text}' is not a number of processes: write it like 100"))),
    }
}

/// `500ms`, `60s`, `5m`, `1h`, `1.5h`, or seconds.
pub fn parse_duration(text: &str) -> Result<Duration, BadLimit> {
    let wrong = || BadLimit(format!("'{text}' is not a time: write it like 500ms, 60s, 5m or 1h"));
    let (number, unit) = split_unit(text).ok_or_else(wrong)?;
    let factor = match unit {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(wrong()),
    };
    match scaled(number, factor).ok_or_else(wrong)? {
        0 => Err(BadLimit(format!("'{text}' is no time at all: the least is 1ms"))),
        millis => Ok(Duration::from_millis(millis)),
    }
}

fn split_unit(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// A decimal number times `factor`, rounded down, exactly: no floating point, so that `1.1` is what
/// it says and a number too large is noticed.
fn scaled(number: &str, factor: u64) -> Option<u64> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || number.ends_with('.') || !digits(whole) || !digits(part) {
        return None;
    }
    let part = &part[..part.len().min(9)];
    let fraction = match part {
        "" => 0,
        _ => part.parse::<u128>().ok()? * u128::from(factor) / 10u128.pow(part.len() as u32),
    };
    let whole = whole.parse::<u128>().ok()?.checked_mul(u128::from(factor))?;
    u64::try_from(whole.checked_add(fraction)?).ok().filter(|&n| n <= i64::MAX as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_every_usual_form() {
        for (text, bytes) in [
            ("512M", 512 << 20),
            ("512MiB", 512 << 20),
            ("512mb", 512 << 20),
            ("1G", 1 << 30),
            ("1.5G", 3 << 29),
            ("8192k", 8 << 20),
            ("10485760", 10 << 20),
            ("4M", 4 << 20),
            ("2t", 2 << 40),
        ] {
            assert_eq!(parse_memory(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_memory_is_named_in_the_error() {
        for text in ["", "M", "12X", "-5M", "1.G", ".5G", "1..5G", "1e9", "99999999999T", "5 M"] {
            let error = parse_memory(text).unwrap_err().to_string();
            assert!(error.contains(&format!("'{text}'")), "{error}");
        }
        assert!(parse_memory("0").unwrap_err().to_string().contains("least is 4M"));
    }

    #[test]
    fn processors_become_a_quota() {
        for (text, quota) in [("1", 100_000), ("1.5", 150_000), ("0.25", 25_000), ("64", 6_400_000)]
        {
            assert_eq!(parse_cpus(text), Ok(quota), "{text}");
        }
        for text in ["", "two", "0", "0.001", "-1", "1,5", "1.5.5", "inf", "NaN"] {
            assert!(parse_cpus(text).unwrap_err().to_string().contains(&format!("'{text}'")));
        }
    }

    #[test]
    fn times_are_read_with_and_without_unit() {
        for (text, millis) in [
            ("60s", 60_000),
            ("5m", 300_000),
            ("1h", 3_600_000),
            ("500ms", 500),
            ("60", 60_000),
            ("1.5", 1_500),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "s", "5x", "-1s", "0", "0ms", "1h30m", "99999999999999999999"] {
            assert!(parse_duration(text).unwrap_err().to_string().contains(&format!("'{text}'")));
        }
    }

    #[test]
    fn a_count_of_processes_is_a_positive_number() {
        assert_eq!(parse_pids("100"), Ok(100));
        for text in ["", "0", "-1", "many", "1.5"] {
            assert!(parse_pids(text).unwrap_err().to_string().contains(&format!("'{text}'")));
        }
    }
}
