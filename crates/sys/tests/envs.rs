//! Envs on the real kernel: what is inside, and what is not.

mod support;

use danki_sys::{Error, ExitStatus};
use support::*;

#[test]
fn a_process_runs_and_its_exit_is_reported() {
    if !is_root("envs") {
        return;
    }
    let keeper = keeper("exit");
    let sandbox = keeper.create(&plan(1)).unwrap();
    println!("caveats: {:?}", sandbox.caveats());
    let (status, out, err) = output(&sandbox, &sh("echo out; echo err >&2; exit 7"));
    assert_eq!((status, out.as_str(), err.as_str()), (ExitStatus::Code(7), "out\n", "err\n"));
    let (status, ..) = output(&sandbox, &sh("kill -9 $$"));
    assert_eq!(status, ExitStatus::Signal(9));
}

#[test]
fn an_exec_that_fails_is_an_error_with_its_reason() {
    if !is_root("envs") {
        return;
    }
    let keeper = keeper("exec");
    let sandbox = keeper.create(&plan(1)).unwrap();
    let error = sandbox.spawn(&program(&["/nowhere"])).unwrap_err();
    assert!(matches!(&error, Error::Exec { program, .. } if program == "/nowhere"), "{error}");
    assert_eq!(error.to_string(), "cannot execute /nowhere: No such file or directory (os error 2)");
    let (status, ..) = output(&sandbox, &sh("exit 0"));
    assert_eq!(status, ExitStatus::Code(0));
}
