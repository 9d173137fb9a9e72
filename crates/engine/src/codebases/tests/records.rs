//! Creating, finding, listing and deleting.

use std::collections::HashSet;

use super::*;
use crate::store::{CodebaseFilter, Page};

fn named(owner: &str, name: &str) -> NewCodebase {
    NewCodebase { owner_id: owner.into(), name: name.into(), ..NewCodebase::default() }
}

#[test]
fn a_new_codebase_has_an_id_of_its_own_what_was_asked_for_and_a_directory() {
    let fixture = Fixture::new();
    let made = fixture.codebases.create(LOCAL, named("ann", "web")).unwrap();
    assert!(Kind::Codebase.check(&made.id));
    assert_eq!((made.name.as_str(), made.owner_id.as_str()), ("web", "ann"));
    assert!(made.created_ms > 0 && made.updated_ms == made.created_ms);
    assert_eq!((made.size, made.file_count, made.version), (0, 0, 1));
    assert!(fixture.codebases.path_of(LOCAL, &made.id).unwrap().is_dir());
    assert_eq!(fixture.get(&made.id), made);
    let ids: HashSet<String> = (0..10).map(|_| fixture.create()).collect();
    assert_eq!(ids.len(), 10);
}

#[test]
fn a_codebase_without_name_or_owner_is_refused_and_leaves_nothing() {
    let fixture = Fixture::new();
    for (owner, name) in [("", "x"), ("x", ""), ("x", &"n".repeat(2000)[..])] {
        assert_code(fixture.codebases.create(LOCAL, named(owner, name)), Code::InvalidArgument);
    }
    for ignore in ["", "..", "a/b"] {
        let wanted = NewCodebase { ignore_files: vec![ignore.into()], ..named("a", "b") };
        assert_code(fixture.codebases.create(LOCAL, wanted), Code::InvalidArgument);
    }
    let bad = vec!["a".into(), "[z".into()];
    let wanted = NewCodebase { mask: bad.clone(), ..named("a", "b") };
    assert_code(fixture.codebases.create(LOCAL, wanted), Code::InvalidArgument);
    let wanted = NewCodebase { default_mask: bad, ..named("a", "b") };
    assert_code(fixture.codebases.create(LOCAL, wanted), Code::InvalidArgument);
    assert!(fixture.store.all_codebases().unwrap().is_empty());
    let trash_only = std::fs::read_dir(fixture.dir.path().join("codebases")).unwrap().count();
    assert_eq!(trash_only, 1);
}

#[test]
fn an_unknown_codebase_is_not_found_whatever_is_asked() {
    let fixture = Fixture::new();
    let all = &fixture.codebases;
    assert_code(all.get(LOCAL, ""), Code::InvalidArgument);
    let real = fixture.create();
    for id in ["cb_0011223344556677", "../../etc", "cb_../../../../xx", "nonsense"] {
        assert_code(all.get(LOCAL, id), Code::CodebaseNotFound);
        assert_code(all.delete(LOCAL, id), Code::CodebaseNotFound);
        assert_code(fixture.write(id, "x", b""), Code::CodebaseNotFound);
        assert_code(fixture.read(id, "x"), Code::CodebaseNotFound);
        assert_code(fixture.list(id, "", true), Code::CodebaseNotFound);
        assert_code(all.remove_file(LOCAL, id, "x"), Code::CodebaseNotFound);
        assert_code(all.stat(LOCAL, id, "x"), Code::CodebaseNotFound);
        assert_code(all.path_of(LOCAL, id), Code::CodebaseNotFound);
        assert_code(all.pin(LOCAL, id, None), Code::CodebaseNotFound);
        assert_code(all.negotiate(LOCAL, id, &[]), Code::CodebaseNotFound);
        assert_code(all.commit(LOCAL, id, &[]), Code::CodebaseNotFound);
    }
    fixture.get(&real);
}

#[test]
fn a_listing_is_filtered_paged_and_oldest_first() {
    let fixture = Fixture::new();
    let owners = ["ann", "bob", "ann", "bob", "ann"];
    let ids: Vec<String> = owners
        .iter()
        .map(|owner| fixture.codebases.create(LOCAL, named(owner, "x")).unwrap().id)
        .collect();
    let list = |owner: Option<&str>, limit, token: &str| {
        let filter = CodebaseFilter { owner_id: owner.map(Into::into) };
        fixture.codebases.list(LOCAL, &filter, &Page { limit, token: token.into() }).unwrap()
    };
    assert_eq!(list(Some("ann"), 0, "").items.len(), 3);
    assert_eq!(list(Some("nobody"), 0, "").items.len(), 0);
    assert_eq!(list(None, 0, "").items.len(), 5);
    assert_eq!(list(None, 5, "").next, None);
    let first = list(None, 3, "");
    let second = list(None, 3, first.next.as_deref().unwrap());
    assert_eq!((first.items.len(), second.items.len(), second.next), (3, 2, None));
    let paged: HashSet<String> =
        first.items.into_iter().chain(second.items).map(|codebase| codebase.id).collect();
    assert_eq!(paged, ids.into_iter().collect());
    let bad = Page { limit: 1, token: "nonsense".into() };
    let filter = CodebaseFilter::default();
    assert_code(fixture.codebases.list(LOCAL, &filter, &bad), Code::InvalidArgument);
}

#[test]
fn a_deleted_codebase_is_gone_with_its_files_and_what_was_being_sent_goes_nowhere() {
    let fixture = Fixture::new();
    let (id, other) = (fixture.create(), fixture.create());
    fixture.write(&id, "a/b", b"x").unwrap();
    let target = UploadTarget::File { path: "late".into(), mode: None };
    let mut late = fixture.codebases.begin_upload(LOCAL, &id, target).unwrap();
    late.write(b"half").unwrap();
    fixture.codebases.delete(LOCAL, &id).unwrap();
    assert_code(fixture.codebases.get(LOCAL, &id), Code::CodebaseNotFound);
    assert_code(fixture.codebases.delete(LOCAL, &id), Code::CodebaseNotFound);
    assert_code(late.finish(), Code::CodebaseNotFound);
    assert!(!fixture.place(&id).exists());
    assert!(fixture.store.files(&id).unwrap().is_empty());
    assert!(fixture.place(&other).exists());
    let trash = fixture.dir.path().join("codebases/trash");
    assert_eq!(std::fs::read_dir(trash).unwrap().count(), 0);
}

#[test]
fn a_codebase_somebody_stands_on_is_not_deleted() {
    let fixture = Fixture::new();
    let id = fixture.create();
    fixture.write(&id, "x", b"x").unwrap();
    let sandbox = fixture.stand_on(&id, 1);
    let problem = assert_code(fixture.codebases.delete(LOCAL, &id), Code::CodebaseInUse);
    assert_eq!(problem.details["sandboxes"], sandbox);
    assert_eq!(fixture.read(&id, "x").unwrap(), b"x");
    fixture.store.delete_sandbox(&sandbox).unwrap();
    fixture.codebases.delete(LOCAL, &id).unwrap();
}

#[test]
fn accounts_do_not_see_each_other() {
    let fixture = Fixture::new();
    fixture.store.ensure_account("other").unwrap();
    let (mine, all) = (fixture.create(), &fixture.codebases);
    fixture.write(&mine, "secret", b"content of mine").unwrap();
    assert_code(all.get("other", &mine), Code::CodebaseNotFound);
    assert_code(all.delete("other", &mine), Code::CodebaseNotFound);
    assert_code(all.open_file("other", &mine, "secret"), Code::CodebaseNotFound);
    assert_code(all.list_files("other", &mine, "", false), Code::CodebaseNotFound);
    assert_code(all.stat("other", &mine, "secret"), Code::CodebaseNotFound);
    assert_code(all.remove_file("other", &mine, "secret"), Code::CodebaseNotFound);
    assert_code(all.pin("other", &mine, None), Code::CodebaseNotFound);
    assert_code(all.path_of("other", &mine), Code::CodebaseNotFound);
    assert_code(all.commit("other", &mine, &[]), Code::CodebaseNotFound);
    let target = UploadTarget::File { path: "secret".into(), mode: None };
    assert_code(all.begin_upload("other", &mine, target), Code::CodebaseNotFound);
    let page = Page::default();
    let filter = CodebaseFilter::default();
    assert!(all.list("other", &filter, &page).unwrap().items.is_empty());
    // Nor can it be found out by its digest what others have.
    let theirs = all.create("other", named("a", "b")).unwrap().id;
    let entry = ManifestEntry {
        path: "x".into(),
        content: Content::File {
            mode: None,
            size: 15,
            digest: blake3::hash(b"content of mine").to_string(),
        },
    };
    assert_eq!(all.negotiate("other", &theirs, &[entry]).unwrap().len(), 1);
    assert_eq!(fixture.read(&mine, "secret").unwrap(), b"content of mine");
}

#[test]
fn a_directory_used_in_place_is_read_and_never_written() {
    let fixture = Fixture::new();
    let outside = tempfile::tempdir().unwrap();
    std::fs::create_dir(outside.path().join("src")).unwrap();
    std::fs::write(outside.path().join("src/main.rs"), "fn main() {}").unwrap();
    let id = fixture.create_local(outside.path());
    let before = contents_of(outside.path());
    assert_eq!(fixture.read(&id, "/workspace/src/main.rs").unwrap(), b"fn main() {}");
    assert_eq!(fixture.list(&id, "", true).unwrap(), ["src/main.rs"]);
    let all = &fixture.codebases;
    assert_code(fixture.write(&id, "x", b"x"), Code::Unsupported);
    assert_code(all.remove_file(LOCAL, &id, "src/main.rs"), Code::Unsupported);
    assert_code(all.negotiate(LOCAL, &id, &[]), Code::Unsupported);
    assert_code(all.commit(LOCAL, &id, &[]), Code::Unsupported);
    let pinned = all.pin(LOCAL, &id, None).unwrap();
    assert_eq!((pinned.path.as_path(), pinned.is_stored()), (outside.path(), false));
    assert_eq!(all.sweep(&[]).unwrap(), []);
    all.unpin(&id, pinned.version).unwrap();
    assert!(!fixture.place(&id).exists());
    let (fixture, done) = fixture.restarted();
    assert_eq!(done, Vec::<String>::new());
    fixture.codebases.delete(LOCAL, &id).unwrap();
    assert_eq!(contents_of(outside.path()), before);
    for bad in ["relative", "/nonexistent/directory", "/etc/passwd"] {
        let wanted = NewCodebase { local_path: Some(bad.into()), ..named("a", "b") };
        assert_code(fixture.codebases.create(LOCAL, wanted), Code::InvalidArgument);
    }
}

#[test]
fn everything_can_be_handed_to_another_thread() {
    fn assert_send<T: Send>() {}
    assert_send::<Codebases>();
    assert_send::<Upload>();
    assert_send::<OpenFile>();
    assert_send::<Pinned>();
}
