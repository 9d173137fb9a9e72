//! What lines mean, each with the corner that other matchers get wrong. That git means the same is
//! asked in `tests/gitignore.rs`.

use super::{Entry, NeverMatches, Rules, check};

/// One file at the root: its text, paths that are kept, paths that are left out. A path that ends in
/// a slash is a directory.
type Case = (&'static str, &'static [&'static str], &'static [&'static str]);

fn leaves_out(rules: &Rules, path: &str) -> bool {
    let slashes = path.match_indices('/').map(|(at, _)| (&path[..at], true));
    let whole = (!path.ends_with('/')).then_some((path, false));
    slashes.chain(whole).any(|(path, is_directory)| {
        let name = path.rsplit('/').next().unwrap_or_default().as_bytes();
        rules.leave_out(Entry { name, path: path.as_bytes(), is_directory }) == Some(true)
    })
}

fn assert_all(cases: &[Case]) {
    for (text, kept, left_out) in cases {
        let rules = Rules::of(text.as_bytes());
        for path in *kept {
            assert!(!leaves_out(&rules, path), "{text:?} leaves out {path:?}");
        }
        for path in *left_out {
            assert!(leaves_out(&rules, path), "{text:?} keeps {path:?}");
        }
    }
}

#[test]
fn a_slash_anchors_unless_it_is_the_last_character() {
    assert_all(&[
        ("a\n", &["b", "x/ab"], &["a", "x/a", "x/y/a"]),
        ("out\n", &["out.txt"], &["out/a", "out/b/c", "x/out/d"]),
        ("/a\n", &["x/a", "ba"], &["a"]),
        ("x/a\n", &["a", "y/x/a", "x/b"], &["x/a"]),
        ("a/\n", &["a.d/a"], &["a/f", "x/a/f", "x/y/a/"]),
        ("README\n", &["readme"], &["README"]),
        ("{a,b}\n(c)\nd+\n", &["a", "b", "c", "d", "dd"], &["{a,b}", "(c)", "d+"]),
        ("/\n//\n///\n", &["a", "x/a"], &[]),
        ("x//a\n//b\n", &["x/a", "b"], &[]),
    ]);
}

#[test]
fn a_star_and_a_question_mark_stay_in_one_name() {
    assert_all(&[
        ("*.o\n", &["o", "a.oo"], &[".o", "a.o", "x/b.c.o"]),
        ("x/*.o\n", &["x/y/a.o", "a.o"], &["x/a.o"]),
        ("*ab*\n", &["a", "b", "a-b"], &["ab", "xab", "abx", "aab", "xabab"]),
        ("*a*bc*d\n", &["abd", "dcba", "abcde"], &["abcd", "aabbcd", "xaxbcxd", "abbcbcd"]),
        ("x*y*/a*b*c\n", &["x/abc", "yx/abc", "xy/acb"], &["xy/abc", "xyy/aabbc", "xayb/abcbc"]),
        ("*/a\n", &["a", "x/y/a"], &["x/a"]),
        ("x/*/a\n", &["x/a", "x/y/z/a"], &["x/y/a"]),
        ("a?\n?/b\n", &["a", "abc", "xx/b", "b"], &["ab", "a.", "x/b"]),
        ("x?a\n", &["x/a"], &["x.a"]),
        ("a?\nb??\n", &["aé", "bx"], &["ax", "bé"]),
        ("*\n", &[], &["a", "x/b"]),
    ]);
}

#[test]
fn stars_in_the_place_of_a_name_are_any_number_of_directories() {
    assert_all(&[
        ("**/a\n**/x/b\n", &["b", "xa"], &["a", "x/a", "x/y/a", "x/b", "y/x/b"]),
        ("x/**\n", &["x/", "y/x/a"], &["x/a", "x/y/b"]),
        ("x/**/a\n", &["a", "y/x/a", "xa"], &["x/a", "x/y/a", "x/y/z/a"]),
        ("x/**/y/**/a\n", &["x/a", "y/a", "x/ya"], &["x/y/a", "x/1/y/a", "x/1/y/2/3/a", "x/y/y/a"]),
        ("**/y/z/**/a/b\n", &["y/a/b", "z/a/b"], &["y/z/a/b", "y/y/z/z/a/b", "y/z/y/z/a/a/b"]),
        ("x/**/**/a\n", &["a"], &["x/a", "x/y/a", "x/y/z/a"]),
        ("***/a\nx/***\n", &["x/", "b"], &["a", "y/a", "x/y/b"]),
        ("**/a/\n", &["b/a"], &["a/f", "x/a/f"]),
        ("**\n", &[], &["a", "x/b"]),
        ("**/\n", &["a"], &["x/b", "x/y/c"]),
    ]);
}

#[test]
fn stars_next_to_something_else_are_one_star() {
    assert_all(&[
        ("a**b\nx/c**d\n", &["a/b", "x/c/d"], &["ab", "a-b", "x/cd", "x/c-d"]),
        // Only what is plain does not count as being before them.
        ("foo**/bar\n", &["foo/", "bar"], &["foo/bar", "foox/bar", "foox/y/bar", "foobar"]),
        ("f?o**/bar\n", &["foox/y/bar", "foobar"], &["foo/bar", "foox/bar"]),
        ("x/**\\/a\n", &["x/a"], &["x/y/a", "x/y/z/a"]),
    ]);
}

#[test]
fn a_bracket_is_a_set_of_bytes() {
    assert_all(&[
        ("[ab]c\n", &["c", "abc", "dc"], &["ac", "bc"]),
        ("[!ab]\n[^ab]x\n", &["a", "b", "ax", "bx"], &["c", "-", "cx"]),
        ("[b-d]\n", &["a", "e", "-"], &["b", "c", "d"]),
        ("[d-b]\n", &["b", "c", "-"], &["d"]),
        ("[a-]\n[-b]x\n", &["c", "cx"], &["a", "-", "-x", "bx"]),
        ("[a-\\c]\n", &["d", "\\"], &["a", "b", "c"]),
        ("[a-c-e]\n", &["d"], &["a", "c", "-", "e"]),
        ("[\\]\\-x]\n", &["\\"], &["]", "-", "x"]),
        ("[]a]\n[!]b]x\n", &["b", "]x", "bx"], &["]", "a", "cx"]),
        ("[[a]\n", &["b", "[["], &["[", "a"]),
        ("x[/]a\nx[!b]a\nx[.-0]a\n", &["x/a", "xba"], &["x.a", "x0a", "x-a"]),
        ("[é]\n[é][é]x\n", &["é"], &["éx"]),
    ]);
}

#[test]
fn a_bracket_may_hold_named_classes() {
    assert_all(&[
        ("[[:digit:]]\n[[:alpha:]_]x\n", &["a", "12", "1x"], &["1", "ax", "_x"]),
        ("[![:digit:]]\n", &["1", "9"], &["a", "-"]),
        ("[[:digit:]-z]\n", &["b", "y"], &["4", "-", "z"]),
        ("[[:word:]]\na[[::]]\n", &["w", "a:", "a:]", "a"], &[]),
        ("a[[:x]\n", &["a"], &["a[", "a:", "ax"]),
    ]);
}

#[test]
fn lines_are_read_as_git_reads_them() {
    assert_all(&[
        ("# a\n\n#b\n   \n", &["a", "# a", "#b", "b"], &[]),
        ("\\#a\n\\!b\n", &["a", "b"], &["#a", "!b"]),
        ("a#b\nc #d\n", &["a", "c"], &["a#b", "c #d"]),
        ("a  \nb\\ \nc\\  \nd\\\\ \n", &["a  ", "b", "b\\", "c", "c  "], &["a", "b ", "c ", "d\\"]),
        (" a\nb\t\n", &["a", "b"], &[" a", "b\t"]),
        ("a\r\n/x/b\r\n*.o\r\n\r\nc\r", &["b"], &["a", "x/b", "c.o", "c"]),
        ("a\nb", &["c"], &["a", "b"]),
        ("\u{feff}a\nb\n", &["c"], &["a", "b"]),
        ("\\a\\b\nc\\*\n", &["cd"], &["ab", "c*"]),
        ("a\0b\n", &["b", "ab"], &["a"]),
    ]);
}

#[test]
fn the_last_line_that_matches_decides() {
    assert_all(&[
        ("*.log\n!keep.log\n", &["keep.log", "x/keep.log"], &["a.log"]),
        ("!a\na\n*.b\n!*.b\nc.b\n", &["d.b"], &["a", "c.b"]),
        ("a*\n!a\n/a?\n!a/\nx/*b\n!x/ab\n", &["a", "x/ab", "a/f"], &["ab", "abc", "x/bb"]),
        ("x/\n!x/a\n", &[], &["x/a", "x/b"]),
        ("x/*\n!x/a\n", &["x/a"], &["x/b"]),
        ("/*\n!/x\n/x/*\n!/x/y\n", &["x/y/a"], &["b", "x/c", "z/d"]),
        ("*\n!*/\n!*.c\n", &["a.c", "x/b.c"], &["a", "x/b"]),
        ("*.o\n!/a.o\n", &["a.o"], &["x/a.o", "b.o"]),
        ("a\n!\n!/\n", &["b"], &["a"]),
        ("a\n!!a\n!b\n", &["!a", "b"], &["a"]),
    ]);
}

#[test]
fn what_can_match_nothing_is_passed_over_and_found() {
    let cases: &[(&str, NeverMatches)] = &[
        ("a[", NeverMatches::OpenBracket),
        ("[b", NeverMatches::OpenBracket),
        ("[]", NeverMatches::OpenBracket),
        ("[!", NeverMatches::OpenBracket),
        ("c[d-", NeverMatches::OpenBracket),
        ("c[d-\\", NeverMatches::OpenBracket),
        ("x/[[:alpha:", NeverMatches::OpenBracket),
        ("a[/]", NeverMatches::EmptyBracket),
        ("[[:word:]]", NeverMatches::UnknownClass),
        ("a\\", NeverMatches::LastBackslash),
        ("a\\/", NeverMatches::LastBackslash),
        ("x\nb/\\", NeverMatches::LastBackslash),
    ];
    for (text, reason) in cases {
        assert_eq!(check(text.as_bytes()), Err(*reason), "{text:?}");
        let name = text.as_bytes();
        let entry = Entry { name, path: name, is_directory: true };
        assert_eq!(Rules::of(format!("!{text}\n").as_bytes()).leave_out(entry), None, "{text:?}");
    }
    for text in ["", "# [", "!", "[z-a]", "a b", "{a", "**", "a\\ "] {
        assert_eq!(check(text.as_bytes()), Ok(()), "{text:?}");
    }
}

/// With going back these would take longer than anybody can wait.
#[test]
fn no_pattern_takes_forever() {
    let long = |part: &str, times, end: &str| part.repeat(times) + end;
    for (pattern, path) in [
        (long("*a", 60, "b"), long("a", 255, "")),
        (long("/*a", 1, &long("*a", 60, "b")), long("a", 255, "")),
        (long("*?", 60, "[b]"), long("a", 255, "")),
        (long("**/a/", 300, "b"), long("a/", 1000, "c")),
        (long("x/", 1, &long("**/*a*a/", 200, "b")), long("x/", 1, &long("aaaa/", 500, "b"))),
    ] {
        let name = path.rsplit('/').next().unwrap_or_default().as_bytes();
        let entry = Entry { name, path: path.as_bytes(), is_directory: false };
        let found = Rules::of(pattern.as_bytes()).leave_out(entry);
        assert_eq!(found, pattern.starts_with("x/").then_some(true), "{pattern}");
    }
}
