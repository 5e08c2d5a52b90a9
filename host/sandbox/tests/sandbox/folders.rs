//! Tests of the folders that a typed component is granted.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;
use wattle_graph::failure::code;
use wattle_run::grant::{FolderAccess, FolderRule, Grants};
use wattle_run::limit::Limits;
use wattle_run::ports::sandbox::GuestError;

use crate::typed::call_given;
use crate::{guest, load};

/// Creates a folder. Returns the folder with its path, of which no part is a symbolic link.
fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    (folder, path)
}

/// Returns grants with one folder, which the guest finds as `/data`.
fn granted(path: &Path, access: FolderAccess) -> Grants {
    let (path, guest) = (path.to_owned(), "/data".to_owned());
    Grants { folders: vec![FolderRule { path, guest, access }], ..Grants::default() }
}

#[tokio::test]
async fn folder_with_a_symbolic_link_in_its_path_is_unavailable() {
    let idle = guest::typed(
        "package a:b; world tools { export idle: func(); }",
        r#"(func (export "idle"))"#,
    );
    let idle = load(idle).await.unwrap();
    let of = |path: PathBuf| {
        let grants = granted(&path, FolderAccess::ReadWrite);
        call_given(idle.as_ref(), "idle", json!({}), Limits::default(), grants)
    };
    let (_folder, root) = folder();
    for path in ["work/cache/today", "etc/today"] {
        fs::create_dir_all(root.join(path)).unwrap();
    }
    assert!(of(root.join("work/cache")).await.is_ok());
    // A guest that is granted the folder `work` can replace `cache` in this way.
    fs::rename(root.join("work/cache"), root.join("work/moved")).unwrap();
    symlink("../etc", root.join("work/cache")).unwrap();
    for path in ["work/cache", "work/cache/today"] {
        match of(root.join(path)).await {
            Err(GuestError::Host(failure)) => {
                assert_eq!(failure.code, code::UNAVAILABLE);
                assert!(failure.message.contains("`/data`"), "{failure}");
            }
            other => panic!("{path} was opened: {other:?}"),
        }
    }
}

#[tokio::test]
async fn guest_with_folders_may_hold_few_resources() {
    let hold = guest::typed_with_imports(
        "package a:b;
        world tools {
            import wasi:filesystem/preopens@0.2.6;
            export hold: func(count: u32) -> u32;
        }
        package wasi:filesystem@0.2.6 {
            interface types { resource descriptor; }
            interface preopens {
                use types.{descriptor};
                get-directories: func() -> list<tuple<descriptor, string>>;
            }
        }",
        r#"(import "wasi:filesystem/preopens@0.2.6" "get-directories"
            (func $directories (param i32)))"#,
        r#"(func (export "hold") (param $count i32) (result i32)
            (loop $more
                (call $directories (i32.const 512))
                (local.set $count (i32.sub (local.get $count) (i32.const 1)))
                (br_if $more (local.get $count)))
            (i32.const 1))"#,
    );
    let hold = load(hold).await.unwrap();
    let (_folder, path) = folder();
    let grants = granted(&path, FolderAccess::ReadOnly);
    let of = |count: u32| {
        let arguments = json!({ "count": count });
        call_given(hold.as_ref(), "hold", arguments, Limits::default(), grants.clone())
    };
    assert_eq!(of(50).await.unwrap().structured, Some(json!(1)));
    match of(200).await {
        Err(GuestError::Limit(failure)) => {
            assert_eq!(failure.details.unwrap()["limit"], "instances");
        }
        other => panic!("no limit ended the function: {other:?}"),
    }
}

/// The interfaces of `wasi:filesystem`, with the functions that a listing needs.
const FILESYSTEM: &str = "
    package wasi:filesystem@0.2.6 {
        interface types {
            enum descriptor-type {
                unknown, block-device, character-device, directory, fifo, symbolic-link,
                regular-file, socket,
            }
            enum error-code {
                access, would-block, already, bad-descriptor, busy, deadlock, quota, exist,
                file-too-large, illegal-byte-sequence, in-progress, interrupted, invalid, io,
                is-directory, loop, too-many-links, message-size, name-too-long, no-device,
                no-entry, no-lock, insufficient-memory, insufficient-space, not-directory,
                not-empty, not-recoverable, unsupported, no-tty, no-such-device, overflow,
                not-permitted, pipe, read-only, invalid-seek, text-file-busy, cross-device,
            }
            record directory-entry { %type: descriptor-type, name: string }
            resource directory-entry-stream {
                read-directory-entry: func() -> result<option<directory-entry>, error-code>;
            }
            resource descriptor {
                read-directory: func() -> result<directory-entry-stream, error-code>;
                unlink-file-at: func(path: string) -> result<_, error-code>;
            }
        }
        interface preopens {
            use types.{descriptor};
            get-directories: func() -> list<tuple<descriptor, string>>;
        }
    }";

/// The guest begins a listing, deletes the file `0`, and then counts the entries of the listing.
#[tokio::test]
async fn listing_reads_the_folder_only_when_the_guest_reads_entries() {
    let wit = format!(
        "package a:b;
        world tools {{
            import wasi:filesystem/types@0.2.6;
            import wasi:filesystem/preopens@0.2.6;
            export count: func() -> u32;
        }}
        {FILESYSTEM}"
    );
    let imports = r#"
        (import "wasi:filesystem/preopens@0.2.6" "get-directories"
            (func $directories (param i32)))
        (import "wasi:filesystem/types@0.2.6" "[method]descriptor.read-directory"
            (func $list (param i32 i32)))
        (import "wasi:filesystem/types@0.2.6" "[method]descriptor.unlink-file-at"
            (func $unlink (param i32 i32 i32 i32)))
        (import "wasi:filesystem/types@0.2.6"
            "[method]directory-entry-stream.read-directory-entry"
            (func $next (param i32 i32)))"#;
    let count = r#"
        (data (i32.const 600) "0")
        (func $check (param $result i32)
            (if (i32.load8_u (local.get $result)) (then (unreachable))))
        (func (export "count") (result i32)
            (local $folder i32) (local $listing i32) (local $entries i32)
            (call $directories (i32.const 512))
            (local.set $folder (i32.load (i32.load (i32.const 512))))
            (call $list (local.get $folder) (i32.const 520))
            (call $check (i32.const 520))
            (local.set $listing (i32.load (i32.const 524)))
            (call $unlink (local.get $folder) (i32.const 600) (i32.const 1) (i32.const 528))
            (call $check (i32.const 528))
            (block $end
                (loop $more
                    (call $next (local.get $listing) (i32.const 536))
                    (call $check (i32.const 536))
                    (br_if $end (i32.eqz (i32.load8_u (i32.const 540))))
                    (local.set $entries (i32.add (local.get $entries) (i32.const 1)))
                    (br $more)))
            (local.get $entries))"#;
    let count = load(guest::typed_with_imports(&wit, imports, count)).await.unwrap();
    let (_folder, path) = folder();
    for number in 0..150 {
        fs::write(path.join(number.to_string()), "").unwrap();
    }
    let grants = granted(&path, FolderAccess::ReadWrite);
    let output = call_given(count.as_ref(), "count", json!({}), Limits::default(), grants).await;
    assert_eq!(output.unwrap().structured, Some(json!(149)));
}
