# Verbs call `cargo xtask`, which does all set-up. `just --list` shows them.

# build what is missing and show the main job
demo *arguments:
    cargo xtask demo {{arguments}}

# every test, with format, lints and documentation
test *arguments:
    cargo xtask test {{arguments}}

# format, lint and tests of what changed, without what takes long
quick *crates:
    cargo xtask quick {{crates}}

# the data sets of the applications, also with imprecise models
eval *apps:
    cargo xtask eval {{apps}}

# large servers and gateways of others, and new apps with packages from the registries
peers:
    cargo xtask peers

# format, lints, documentation, spelling, licenses
check:
    cargo xtask check

# made-up bytes for everything that reads foreign ones, a minute each
fuzz *arguments:
    cargo xtask fuzz {{arguments}}

# every attack of the suite on a real host, with other callers beside it
attack *arguments:
    cargo xtask attack {{arguments}}

# the WebAssembly guests
guests:
    cargo xtask guests

# steps per second, in memory and on redb; `just bench peer` measures LangGraph as well
bench *arguments:
    cargo xtask bench {{arguments}}

# what continuous integration runs
ci:
    bash .ci/run
