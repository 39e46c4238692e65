//! The page holds what it is given, within its size. Both files stay in `target/tmp` for the browser tests.

use danki_runview::{Run, build, html};
use std::fs;
use std::path::{Path, PathBuf};

/// Where the browser tests find them.
fn leave(name: &str, page: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, page).expect("written");
    path
}

#[test]
fn ten_thousand_invocations_fit_into_one_and_a_half_megabytes() {
    let run = crate::support::run(10_000);
    let page = html(&build(&run));
    leave("report-10000.html", &page);
    assert!(page.len() <= 1_500_000, "{} bytes", page.len());
}

#[test]
fn columns_are_as_long_as_there_are_rows_and_parts_fill_the_span() {
    let run = crate::support::run(300);
    let page = build(&run);
    let rows = &page.invocations;
    assert_eq!(rows.id.len(), 300);
    for column in [
        &rows.variant,
        &rows.env,
        &rows.start,
        &rows.failure,
        &rows.dispatched_delta,
        &rows.span,
        &rows.duration,
    ] {
        assert_eq!(column.len(), 300);
    }
    for (row, segments) in rows.segments.iter().enumerate() {
        let filled: i64 = segments.chunks(2).map(|piece| piece[1]).sum();
        assert_eq!(filled, rows.span[row], "row {row}");
    }
    let calls = &page.calls;
    for column in [
        &calls.invocation,
        &calls.name,
        &calls.conn,
        &calls.from,
        &calls.sent,
        &calls.done,
        &calls.tcp,
        &calls.idle,
    ] {
        assert_eq!(column.len(), 300, "one call each");
    }
    assert_eq!(page.connections.conn.len(), page.connections.closed_by.len());
    assert_eq!(page.costs.len(), 2);
    let edges: Vec<(&str, &str, u64)> =
        page.edges.iter().map(|e| (e.variant.as_str(), e.operation.as_str(), e.calls)).collect();
    assert_eq!(edges, [("off", "GetItem", 150), ("on", "GetItem", 150)]);
    assert_eq!((page.edges[0].opened, page.edges[1].opened), (150, 1), "one of them keeps its connection");
    let text = html(&page);
    assert!(text.starts_with("<!doctype html>") && !text.contains("%DANKI-"), "all marks are replaced");
}

/// Writes what a run directory must have.
fn write(run: &Run, dir: &Path) {
    let put = |name: &str, text: String| fs::write(dir.join(name), text).expect("written");
    put("manifest.json", serde_json::to_string(&run.manifest).expect("plain"));
    put("summary.json", serde_json::to_string(&run.summary).expect("plain"));
    put("events.jsonl", run.events.iter().map(|e| serde_json::to_string(e).expect("plain") + "\n").collect());
}

#[test]
fn a_run_directory_is_read_back_and_a_broken_one_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let run = crate::support::run(20);
    write(&run, dir.path());
    let back = Run::read(dir.path()).expect("reads");
    let names = |run: &Run| run.summary.findings.iter().map(|f| f.kind.clone()).collect::<Vec<_>>();
    assert_eq!((names(&back), back.events.len()), (names(&run), run.events.len()));
    let path = danki_runview::write_html(dir.path()).expect("written");
    assert!(fs::read_to_string(&path).expect("there").len() > 50_000);
    // A killed run's last line may be cut off.
    let events = dir.path().join("events.jsonl");
    let text = fs::read_to_string(&events).expect("there");
    fs::write(&events, &text[..text.len() - 20]).expect("written");
    assert_eq!(Run::read(dir.path()).expect("still reads").events.len(), run.events.len() - 1);
    fs::write(dir.path().join("summary.json"), "{}").expect("written");
    let error = Run::read(dir.path()).expect_err("no summary");
    assert!(error.to_string().contains("summary.json"), "{error}");
}

#[test]
fn a_page_of_three_hundred_stays_for_the_browser_tests() {
    let page = html(&build(&crate::support::run(300)));
    assert!(leave("report-300.html", &page).is_file());
}
