//! Things in a row with gaps between them: bytes of a name around `*`, names of a path around `**`.

/// Runs of parts. Within a run one follows the other, between two runs anything may be.
#[derive(Debug)]
pub(super) struct Gapped<P> {
    /// At least one; only the first and the last may be empty.
    runs: Vec<Vec<P>>,
}

impl<P> Default for Gapped<P> {
    fn default() -> Self {
        Self { runs: vec![vec![]] }
    }
}

impl<P> Gapped<P> {
    pub(super) fn push(&mut self, part: P) {
        self.runs.last_mut().expect("there is a run").push(part);
    }

    /// Two gaps in a row are one.
    pub(super) fn gap(&mut self) {
        if self.runs.len() == 1 || !self.runs[self.runs.len() - 1].is_empty() {
            self.runs.push(vec![]);
        }
    }

    /// Just a gap and a part: the part. Anything else is given back.
    pub(super) fn one_after_gap(mut self) -> Result<P, Self> {
        match &mut self.runs[..] {
            [start, end] if start.is_empty() && end.len() == 1 => Ok(end.remove(0)),
            _ => Err(self),
        }
    }

    pub(super) fn runs(&self) -> &[Vec<P>] {
        &self.runs
    }

    /// The part that everything begins with, if it is not a gap.
    pub(super) fn first(&self) -> Option<&P> {
        self.runs.first()?.first()
    }

    /// The part that everything ends with, if it is not a gap.
    pub(super) fn last(&self) -> Option<&P> {
        self.runs.last()?.last()
    }

    /// Whether all of `things` is in this row, where `is` compares one with one.
    ///
    /// The first and the last run have only one place to be. Any other is put where it fits first,
    /// since what leaves most to those after it is best. So a part meets a thing once at most, and
    /// there is no going back that a hostile pattern could make long.
    pub(super) fn fits<T>(&self, things: &[T], is: impl Fn(&P, &T) -> bool + Copy) -> bool {
        let Some((first, others)) = self.runs.split_first() else { return false };
        let Some((last, middle)) = others.split_last() else {
            return first.len() == things.len() && starts(things, first, is);
        };
        if things.len() < first.len() + last.len() {
            return false;
        }
        let (things, end) = things.split_at(things.len() - last.len());
        starts(end, last, is)
            && starts(things, first, is)
            && middle
                .iter()
                .try_fold(&things[first.len()..], |left, run| after(left, run, is))
                .is_some()
    }
}

/// What is left behind the first place where `run` fits.
fn after<'a, P, T>(
    things: &'a [T],
    run: &[P],
    is: impl Fn(&P, &T) -> bool + Copy,
) -> Option<&'a [T]> {
    let at = things.windows(run.len()).position(|window| starts(window, run, is))?;
    Some(&things[at + run.len()..])
}

fn starts<P, T>(things: &[T], run: &[P], is: impl Fn(&P, &T) -> bool) -> bool {
    things.len() >= run.len() && run.iter().zip(things).all(|(part, thing)| is(part, thing))
}
