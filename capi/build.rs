//! How the library is linked: `SONAME` has the number of the ABI, and the library stays in a process that has loaded it,
//! because what it has open (LMDB's locks belong to the process) must not be opened by a second copy.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |variable: &str, value: &str| std::env::var(variable).is_ok_and(|found| found == value);
    if is("CARGO_CFG_TARGET_OS", "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libmcp_state.so.1,-z,nodelete");
        if is("PROFILE", "release") {
            println!("cargo::rustc-cdylib-link-arg=-Wl,--strip-all");
        }
    }
}
