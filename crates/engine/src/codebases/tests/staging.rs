//! The contents of many files in one stream.

use super::*;

/// A file that fits in one piece.
fn whole(data: &[u8]) -> Piece<'_> {
    Piece { data, end: true }
}

fn part(data: &[u8]) -> Piece<'_> {
    Piece { data, end: false }
}

fn digests(contents: &[&[u8]]) -> Vec<String> {
    contents.iter().map(|bytes| blake3::hash(bytes).to_string()).collect()
}

impl Fixture {
    fn begin(&self, id: &str) -> Staging {
        self.codebases.begin_staging(LOCAL, id).unwrap()
    }

    /// Digests of what waits for a commit, sorted.
    fn staged(&self, id: &str) -> Vec<String> {
        let stage = std::fs::read_dir(self.place(id).join("stage")).unwrap();
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.unwrap().file_name().into_string().unwrap()
        };
        let mut names: Vec<String> = stage.map(name).collect();
        names.sort();
        names
    }

    #[track_caller]
    fn assert_staged(&self, id: &str, contents: &[&[u8]]) {
        let mut expected = digests(contents);
        expected.sort();
        assert_eq!(self.staged(id), expected);
        for (content, digest) in contents.iter().zip(digests(contents)) {
            assert_eq!(std::fs::read(self.place(id).join("stage").join(digest)).unwrap(), *content);
        }
        let left = std::fs::read_dir(self.place(id).join("tmp")).unwrap().count();
        assert_eq!(left, 0, "temporary files are left");
    }
}

#[test]
fn files_begin_and_end_anywhere_in_a_message() {
    let fixture = Fixture::new();
    let id = fixture.create();
    let mut staging = fixture.begin(&id);
    staging.take([]).unwrap();
    staging.take([whole(b"one"), whole(b""), part(b"lo")]).unwrap();
    staging.take([part(b""), part(b"ng")]).unwrap();
    staging.take([whole(b"er"), whole(b"one"), part(b"two"), whole(b"")]).unwrap();
    let done = staging.finish().unwrap();
    assert_eq!(done.blake3, digests(&[b"one", b"", b"longer", b"one", b"two"]));
    assert_eq!(done.bytes, 15);
    fixture.assert_staged(&id, &[b"one", b"", b"longer", b"two"]);
}

#[test]
fn what_was_complete_stays_however_the_stream_ends() {
    let fixture = Fixture::new();
    let id = fixture.create();
    let mut staging = fixture.begin(&id);
    staging.take([whole(b"one"), part(b"ha")]).unwrap();
    let problem = assert_code(staging.finish(), Code::InvalidArgument);
    assert!(problem.message.contains("middle of a file"), "{problem}");
    fixture.assert_staged(&id, &[b"one"]);
    let mut staging = fixture.begin(&id);
    staging.take([whole(b"two"), part(b"ha")]).unwrap();
    drop(staging);
    fixture.assert_staged(&id, &[b"one", b"two"]);
}

#[test]
fn limits_hold_and_what_came_before_stays() {
    let limits =
        Limits { max_file_size: 10, max_codebase_size: 15, max_files: 4, ..Limits::default() };
    let fixture = Fixture::with(limits);
    let id = fixture.create();
    let over = |staging: &mut Staging, pieces: &[Piece<'_>], limit: &str| {
        let problem =
            assert_code(staging.take(pieces.iter().copied()), Code::ResourceLimitExceeded);
        assert_eq!(problem.details["limit"], limit);
    };
    over(&mut fixture.begin(&id), &[whole(b"a"), part(&[0; 6]), whole(&[0; 5])], "max_file_size");
    fixture.assert_staged(&id, &[b"a"]);
    let pieces = [whole(&[1; 10]), whole(b"b"), whole(&[2; 4]), whole(b"c")];
    over(&mut fixture.begin(&id), &pieces, "max_codebase_size");
    fixture.assert_staged(&id, &[b"a", &[1; 10], b"b"]);
    let pieces = [whole(b"b"), whole(b"c"), whole(b"d")];
    over(&mut fixture.begin(&id), &pieces, "max_files");
    fixture.assert_staged(&id, &[b"a", &[1; 10], b"b", b"c"]);
}

#[test]
fn an_account_stages_no_more_than_it_may_store() {
    let fixture = Fixture::with(Limits { max_account_size: 10, ..Limits::default() });
    let (one, two) = (fixture.create(), fixture.create());
    fixture.write(&one, "a", &[0; 4]).unwrap();
    let mut staging = fixture.begin(&two);
    let problem = assert_code(staging.take([part(&[0; 7])]), Code::ResourceLimitExceeded);
    assert_eq!(problem.details["limit"], "max_account_size");
    let mut staging = fixture.begin(&two);
    staging.take([whole(&[1; 4])]).unwrap();
    // Counted when it is kept: meanwhile others have stored something.
    fixture.write(&one, "b", &[0; 2]).unwrap();
    let problem = assert_code(staging.take([whole(b"x")]), Code::ResourceLimitExceeded);
    assert_eq!(problem.details["limit"], "max_account_size");
    fixture.assert_staged(&two, &[&[1; 4]]);
    // What a commit would replace does not count.
    fixture.begin(&one).take([whole(&[2; 6])]).unwrap();
}

#[test]
fn more_files_than_fit_in_an_answer_are_refused() {
    let fixture = Fixture::new();
    let id = fixture.create();
    let mut staging = fixture.begin(&id);
    // In hexadecimal digits, and two bytes that say what they are.
    assert!(staging.most_files * 66 < 4 << 20);
    staging.most_files = 3;
    staging.take([whole(b"1"), whole(b"2"), part(b"lon"), whole(b"ger")]).unwrap();
    let problem = assert_code(staging.take([whole(b"4")]), Code::ResourceLimitExceeded);
    assert_eq!(problem.details["limit"], "max_files_of_a_stream");
    assert_eq!(problem.details["most"], "3");
    fixture.assert_staged(&id, &[b"1", b"2", b"longer"]);
}

#[test]
fn many_are_put_in_place_as_they_come_and_not_only_at_the_end_of_a_message() {
    let fixture = Fixture::with(Limits { max_files: 1500, ..Limits::default() });
    let id = fixture.create();
    let contents: Vec<String> = (0..2000).map(|n| n.to_string()).collect();
    let pieces = contents.iter().map(|content| whole(content.as_bytes()));
    assert_code(fixture.begin(&id).take(pieces), Code::ResourceLimitExceeded);
    assert_eq!(fixture.staged(&id).len(), 1500);
}

#[test]
fn only_a_stored_codebase_of_the_account_takes_them() {
    let fixture = Fixture::new();
    let outside = tempfile::tempdir().unwrap();
    let (id, local) = (fixture.create(), fixture.create_local(outside.path()));
    let begin = |account: &str, id: &str| fixture.codebases.begin_staging(account, id);
    assert_code(begin("other", &id), Code::CodebaseNotFound);
    assert_code(begin(LOCAL, "cb_0123456789abcdef"), Code::CodebaseNotFound);
    assert_code(begin(LOCAL, "../x"), Code::CodebaseNotFound);
    assert_code(begin(LOCAL, ""), Code::InvalidArgument);
    assert_code(begin(LOCAL, &local), Code::Unsupported);
    let mut staging = fixture.begin(&id);
    fixture.codebases.delete(LOCAL, &id).unwrap();
    assert!(staging.take([whole(b"late")]).is_err());
    assert!(!fixture.place(&id).exists());
}
