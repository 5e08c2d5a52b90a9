//! Decodes the parts of a frame.

use wattle_run::ports::store::StoreError;

use crate::error::corrupt;

/// A reader of little-endian numbers and bytes.
pub(crate) struct ByteReader<'a> {
    what: &'static str,
    rest: &'a [u8],
}

impl<'a> ByteReader<'a> {
    /// Creates a reader of `rest`. `what` names the data in errors.
    pub(crate) fn new(what: &'static str, rest: &'a [u8]) -> Self {
        Self { what, rest }
    }

    /// Returns the bytes that are not read yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Reads `count` bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], StoreError> {
        let Some((bytes, rest)) = self.rest.split_at_checked(count) else {
            let message = format!("{count} bytes expected, {} found", self.rest.len());
            return Err(corrupt(self.what, message));
        };
        self.rest = rest;
        Ok(bytes)
    }

    /// Reads an array of `N` bytes.
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], StoreError> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    /// Reads a little-endian `u32`.
    pub(crate) fn u32(&mut self) -> Result<u32, StoreError> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads a little-endian `u64`.
    pub(crate) fn u64(&mut self) -> Result<u64, StoreError> {
        self.array().map(u64::from_le_bytes)
    }
}
