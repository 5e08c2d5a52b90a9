//! A typed component, as third parties build theirs: it knows nothing of Wattle. Its standard
//! library imports files and environment of WASI.
#![cfg(target_family = "wasm")]

use std::fs;

use bindings::exports::acme::shop::{orders, place};

mod bindings {
    #![allow(
        missing_docs,
        unreachable_pub,
        unsafe_code,
        rust_2018_idioms,
        clippy::all,
        clippy::pedantic,
        clippy::undocumented_unsafe_blocks,
        clippy::allow_attributes_without_reason,
        reason = "generated"
    )]

    use super::Shop;

    wit_bindgen::generate!({ world: "shop" });

    export!(Shop);
}

struct Shop;

impl orders::Guest for Shop {
    fn total(lines: Vec<orders::Line>) -> Result<f64, String> {
        if lines.is_empty() {
            return Err("no lines".to_owned());
        }
        Ok(lines.iter().map(|line| f64::from(line.quantity) * line.price).sum())
    }
}

impl place::Guest for Shop {
    type File = File;

    fn variable(name: String) -> Option<String> {
        std::env::var(name).ok()
    }

    fn read(path: String) -> Result<String, String> {
        fs::read_to_string(path).map_err(|error| error.to_string())
    }

    fn write(path: String, text: String) -> Result<(), String> {
        fs::write(path, text).map_err(|error| error.to_string())
    }

    fn open(path: String) -> Result<place::File, String> {
        let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
        Ok(place::File::new(File(text)))
    }
}

struct File(String);

impl place::GuestFile for File {
    fn read(&self) -> String {
        self.0.clone()
    }
}
