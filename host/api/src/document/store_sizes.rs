//! JSON representation of the sizes of the store.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wattle_run::ports::store::{OwnerUsage, StoreUsage, UNBOUND};

/// Maximum number of apps, of tenants and of files that a document names. A host can have any
/// number of tenants; those that take the most are what an operator looks for.
const SIZE_ROWS: usize = 100;

/// Sizes of the store at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoreSizesDocument {
    /// Time of the measurement, in milliseconds since 1970.
    pub measured_ms: i64,
    /// Number of threads.
    pub threads: u64,
    /// Bytes of the threads in the store, without blobs.
    pub bytes: u64,
    /// Threads by app, the largest first.
    pub apps: Vec<OwnerSizeDocument>,
    /// Threads by tenant, the largest first.
    pub tenants: Vec<OwnerSizeDocument>,
    /// Bytes of the tables and indexes of the database; absent for a store in files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database_bytes: Option<u64>,
    /// Files and folders directly in the data folder of the host that responds, the largest first,
    /// at most 100.
    pub files: Vec<FileSizeDocument>,
    /// False if the data folder has more files than are measured.
    pub is_complete: bool,
}

/// The threads of an app or of a tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OwnerSizeDocument {
    /// Name of the app or tenant. Absent for threads without an app or without a tenant, and for the
    /// remaining names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// True for the row that adds up the names without a row of their own.
    pub is_other: bool,
    /// Number of threads.
    pub threads: u64,
    /// Bytes of the threads in the store, without blobs.
    pub bytes: u64,
}

/// A file or folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileSizeDocument {
    /// Name in the data folder.
    pub name: String,
    /// True for a folder.
    pub is_folder: bool,
    /// Number of files in the folder and in all folders below; 1 for a file.
    pub files: u64,
    /// Bytes of the file, or of all these files.
    pub bytes: u64,
}

impl StoreSizesDocument {
    /// Describes the usage of a store and the files of the data folder.
    pub fn new(
        measured_ms: i64,
        usage: &StoreUsage,
        mut files: Vec<FileSizeDocument>,
        is_complete: bool,
    ) -> Self {
        let (mut total, mut apps, mut tenants) =
            (OwnerUsage::default(), BTreeMap::new(), BTreeMap::new());
        for ((app, tenant), usage) in &usage.owners {
            let app = (app.as_str() != UNBOUND).then(|| app.to_string());
            add(&mut total, *usage);
            add(apps.entry(app).or_default(), *usage);
            add(tenants.entry(tenant.clone()).or_default(), *usage);
        }
        files.sort_by_key(|file| Reverse(file.bytes));
        files.truncate(SIZE_ROWS);
        Self {
            measured_ms,
            threads: total.threads,
            bytes: total.bytes,
            apps: rows(apps),
            tenants: rows(tenants),
            database_bytes: usage.database_bytes,
            files,
            is_complete,
        }
    }
}

fn add(sum: &mut OwnerUsage, usage: OwnerUsage) {
    sum.threads += usage.threads;
    sum.bytes = sum.bytes.saturating_add(usage.bytes);
}

/// Returns the largest owners, and a row with the sum of all others.
fn rows(owners: BTreeMap<Option<String>, OwnerUsage>) -> Vec<OwnerSizeDocument> {
    let mut owners: Vec<_> = owners.into_iter().collect();
    owners.sort_by_key(|(_, usage)| Reverse(usage.bytes));
    let others = owners.split_off(owners.len().min(SIZE_ROWS));
    let row = |name, is_other, OwnerUsage { threads, bytes }| OwnerSizeDocument {
        name,
        is_other,
        threads,
        bytes,
    };
    let mut rows: Vec<_> =
        owners.into_iter().map(|(name, usage)| row(name, false, usage)).collect();
    if !others.is_empty() {
        let mut sum = OwnerUsage::default();
        for (_, usage) in others {
            add(&mut sum, usage);
        }
        rows.push(row(None, true, sum));
    }
    rows
}

#[cfg(test)]
mod tests {
    use wattle_graph::id::AppName;

    use super::*;

    #[test]
    fn largest_owners_have_rows_and_others_are_added_up() {
        let mut usage = StoreUsage::default();
        for number in 0..SIZE_ROWS + 2 {
            let app = AppName::new("demo").unwrap();
            usage.add(&app, Some(&format!("t{number}")), 10 + number as u64);
        }
        usage.add(&AppName::new(UNBOUND).unwrap(), None, 1);
        let sizes = StoreSizesDocument::new(7, &usage, Vec::new(), true);
        assert_eq!((sizes.measured_ms, sizes.threads), (7, SIZE_ROWS as u64 + 3));
        let apps: Vec<_> =
            sizes.apps.iter().map(|app| (app.name.as_deref(), app.threads)).collect();
        assert_eq!(apps, [(Some("demo"), SIZE_ROWS as u64 + 2), (None, 1)]);
        assert_eq!(sizes.tenants.len(), SIZE_ROWS + 1);
        assert_eq!(sizes.tenants[0].name.as_deref(), Some("t101"));
        let expected =
            OwnerSizeDocument { name: None, is_other: true, threads: 3, bytes: 1 + 10 + 11 };
        assert_eq!(sizes.tenants[SIZE_ROWS], expected);
        let sum: u64 = sizes.tenants.iter().map(|tenant| tenant.bytes).sum();
        assert_eq!(sum, sizes.bytes);
    }

    #[test]
    fn largest_files_come_first() {
        let file = |name: &str, bytes| FileSizeDocument {
            name: name.to_owned(),
            files: 1,
            bytes,
            ..FileSizeDocument::default()
        };
        let files = vec![file("a", 1), file("b", 3), file("c", 2)];
        let sizes = StoreSizesDocument::new(0, &StoreUsage::default(), files, false);
        let names: Vec<_> = sizes.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!((names, sizes.is_complete), (vec!["b", "c", "a"], false));
    }
}
