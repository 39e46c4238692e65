use super::*;
use proptest::prelude::*;

fn policy(ttl_s: u64) -> Policy {
    Policy {
        capacity: 2,
        secret_ttl: Duration::from_secs(ttl_s),
        parameter_ttl: Duration::from_secs(ttl_s),
        stale_while_revalidate: Duration::ZERO,
        stale_if_error: Duration::ZERO,
        negative: Duration::ZERO,
        detailed: false,
    }
}

fn at(seconds: u64) -> Now {
    Now { monotonic: Duration::from_secs(seconds), epoch: Duration::from_secs(seconds) }
}

fn wanted(name: &str) -> Wanted {
    Wanted::Secret { id: name.to_owned(), version_id: None, version_stage: None }
}

fn fetch(name: &str) -> Fetch {
    Fetch { wanted: wanted(name), dialect: Dialect::Layer, refresh: false }
}

fn refresh(name: &str) -> Fetch {
    Fetch { refresh: true, ..fetch(name) }
}

fn value(text: &str) -> Result<Rc<Page>, Failure> {
    Ok(Page::json(200, text.as_bytes()))
}

fn missing() -> Failure {
    Failure::Refused {
        status: 400,
        kind: "ResourceNotFoundException".into(),
        message: "m".into(),
        request_id: "r".into(),
    }
}

fn text(page: &Page) -> String {
    String::from_utf8_lossy(page.body()).into_owned()
}

/// What a client gets at once; none if it must wait. The second says whether a fetch begins.
fn ask(desk: &mut Desk<u32>, who: u32, fetch: &Fetch, now: u64) -> (Option<String>, bool) {
    let (verdict, start) = desk.ask(who, fetch, at(now));
    let answer = match verdict {
        Verdict::Answer(page) => Some(text(&page)),
        Verdict::Wait => None,
    };
    (answer, start)
}

fn finish(
    desk: &mut Desk<u32>,
    name: &str,
    outcome: Result<Rc<Page>, Failure>,
    began: u64,
    now: u64,
) -> (Vec<(u32, String)>, bool) {
    let finished = desk.finish(&wanted(name), outcome, at(began), at(now));
    (finished.answers.iter().map(|(who, page)| (*who, text(page))).collect(), finished.again)
}

fn answers(list: &[(u32, &str)]) -> Vec<(u32, String)> {
    list.iter().map(|(who, text)| (*who, (*text).to_owned())).collect()
}

#[test]
fn a_hundred_misses_make_one_fetch() {
    let mut desk = Desk::new(policy(300), Serving::Yes);
    let started = (0..100).filter(|who| ask(&mut desk, *who, &fetch("a"), 0) == (None, true)).count();
    assert_eq!(started, 1);
    let (answered, again) = finish(&mut desk, "a", value("v"), 0, 1);
    assert_eq!((answered.len(), again), (100, false));
    assert!(answered.iter().all(|(_, text)| text == "v"));
    assert_eq!(ask(&mut desk, 100, &fetch("a"), 2), (Some("v".to_owned()), false));
    assert_eq!(
        (desk.counts.misses, desk.counts.joined, desk.counts.hits, desk.counts.fetches),
        (1, 99, 1, 1)
    );
}

#[test]
fn a_value_lives_as_long_as_its_ttl() {
    let mut desk = Desk::new(policy(300), Serving::Yes);
    ask(&mut desk, 1, &fetch("a"), 0);
    finish(&mut desk, "a", value("old"), 0, 5);
    assert_eq!(ask(&mut desk, 1, &fetch("a"), 299), (Some("old".to_owned()), false));
    // The age counts from the beginning of the fetch.
    assert_eq!(ask(&mut desk, 1, &fetch("a"), 300), (None, true));
    assert_eq!(finish(&mut desk, "a", value("new"), 300, 301).0, answers(&[(1, "new")]));
}

#[test]
fn a_ttl_of_zero_keeps_nothing() {
    let mut desk = Desk::new(policy(0), Serving::Yes);
    ask(&mut desk, 1, &fetch("a"), 0);
    finish(&mut desk, "a", value("v"), 0, 0);
    assert_eq!(ask(&mut desk, 1, &fetch("a"), 0), (None, true));
}

#[test]
fn a_failure_is_told_in_awss_words_and_forgotten() {
    let mut desk = Desk::new(policy(300), Serving::Yes);
    ask(&mut desk, 1, &fetch("a"), 0);
    assert_eq!(finish(&mut desk, "a", Err(missing()), 0, 1).0, answers(&[(1, UNEXPECTED)]));
    assert_eq!(ask(&mut desk, 1, &fetch("a"), 1), (None, true));
}

#[test]
fn before_the_first_invocation_aws_refuses() {
    let mut desk = Desk::new(policy(300), Serving::NotYet);
    assert_eq!(ask(&mut desk, 1, &fetch("a"), 0), (Some(NOT_READY.to_owned()), false));
    assert_eq!(desk.prefetch(&[wanted("a"), wanted("a"), wanted("b")]), [wanted("a"), wanted("b")]);
    finish(&mut desk, "a", value("v"), 0, 1);
    desk.invoked();
    assert_eq!(ask(&mut desk, 1, &fetch("a"), 2), (Some("v".to_owned()), false));
}

#[test]
fn nothing_of_a_snapshot_is_kept() {
    let mut desk = Desk::new(policy(300), Serving::WithoutCache);
    assert!(desk.prefetch(&[wanted("a")]).is_empty());
    assert_eq!(ask(&mut desk, 1, &fetch("a"), 0), (None, true));
    assert_eq!(finish(&mut desk, "a", value("v"), 0, 1).0, answers(&[(1, "v")]));
    assert_eq!(ask(&mut desk, 1, &fetch("a"), 1), (None, true));
    // A fetch that began before the snapshot and ends after the restore is not kept either.
    desk.invoked();
    finish(&mut desk, "a", value("v"), 1, 2);
    assert_eq!(ask(&mut desk, 1, &fetch("a"), 2), (None, true));
}

#[test]
fn stale_while_revalidate_answers_at_once_and_fetches_once() {
    let with = Policy { stale_while_revalidate: Duration::from_secs(60), ..policy(300) };
    let mut desk = Desk::new(with, Serving::Yes);
    ask(&mut desk, 1, &fetch("a"), 0);
    finish(&mut desk, "a", value("old"), 0, 0);
    assert_eq!(ask(&mut desk, 1, &fetch("a"), 310), (Some("old".to_owned()), true));
    assert_eq!(ask(&mut desk, 2, &fetch("a"), 311), (Some("old".to_owned()), false));
    assert_eq!(finish(&mut desk, "a", value("new"), 310, 312), (Vec::new(), false));
    assert_eq!(ask(&mut desk, 1, &fetch("a"), 313), (Some("new".to_owned()), false));
    assert_eq!(ask(&mut desk, 1, &fetch("a"), 310 + 360), (None, true));
}

#[test]
fn stale_if_error_stands_in_for_failures_but_not_for_a_no() {
    let with = Policy { stale_if_error: Duration::from_secs(60), ..policy(300) };
    let check = |failure: Failure, now: u64, expect: &str| {
        let mut desk = Desk::new(with.clone(), Serving::Yes);
        ask(&mut desk, 1, &fetch("a"), 0);
        finish(&mut desk, "a", value("old"), 0, 0);
        assert_eq!(ask(&mut desk, 1, &fetch("a"), now), (None, true));
        assert_eq!(finish(&mut desk, "a", Err(failure), now, now).0, answers(&[(1, expect)]));
    };
    check(Failure::Timeout(5), 310, "old");
    check(Failure::Timeout(5), 360, UNEXPECTED);
    check(missing(), 310, UNEXPECTED); // deleted: the old value is gone, too
    // Without the setting an old value is never used.
    let mut desk = Desk::new(policy(300), Serving::Yes);
    ask(&mut desk, 1, &fetch("a"), 0);
    finish(&mut desk, "a", value("old"), 0, 0);
    ask(&mut desk, 1, &fetch("a"), 300);
    assert_eq!(finish(&mut desk, "a", Err(Failure::Timeout(5)), 300, 300).0, answers(&[(1, UNEXPECTED)]));
}

#[test]
fn a_refused_name_may_be_remembered_shortly() {
    let with = Policy { negative: Duration::from_secs(2), ..policy(300) };
    let mut desk = Desk::new(with, Serving::Yes);
    ask(&mut desk, 1, &fetch("a"), 0);
    finish(&mut desk, "a", Err(missing()), 0, 0);
    assert_eq!(ask(&mut desk, 1, &fetch("a"), 1), (Some(UNEXPECTED.to_owned()), false));
    assert_eq!(ask(&mut desk, 1, &fetch("a"), 2), (None, true));
    finish(&mut desk, "a", Err(Failure::Timeout(5)), 2, 2);
    assert_eq!(ask(&mut desk, 1, &fetch("a"), 2), (None, true));
}

#[test]
fn refresh_now_waits_for_a_fetch_that_begins_after_it() {
    let mut desk = Desk::new(policy(300), Serving::Yes);
    ask(&mut desk, 1, &fetch("a"), 0);
    finish(&mut desk, "a", value("1"), 0, 0);
    assert_eq!(ask(&mut desk, 1, &refresh("a"), 1), (None, true));
    assert_eq!(ask(&mut desk, 2, &refresh("a"), 2), (None, false));
    assert_eq!(finish(&mut desk, "a", value("2"), 1, 3), (answers(&[(1, "2")]), true));
    assert_eq!(finish(&mut desk, "a", value("3"), 3, 4), (answers(&[(2, "3")]), false));
    assert_eq!(ask(&mut desk, 3, &fetch("a"), 5), (Some("3".to_owned()), false));
}

#[test]
fn details_and_the_agents_form_are_told_to_who_wants_them() {
    let mut desk = Desk::new(Policy { detailed: true, ..policy(300) }, Serving::Yes);
    ask(&mut desk, 1, &fetch("a"), 0);
    let details = r#"{"__type":"ResourceNotFoundException","message":"m","status":400}"#;
    assert_eq!(finish(&mut desk, "a", Err(missing()), 0, 0).0, answers(&[(1, details)]));
    let agent = Fetch { dialect: Dialect::Agent, ..fetch("a") };
    let mut desk = Desk::new(policy(300), Serving::Yes);
    ask(&mut desk, 1, &agent, 0);
    ask(&mut desk, 2, &fetch("a"), 0);
    let body = r#"{"Name":"n","SecretString":"s","VersionStages":null}"#;
    let (given, _) = finish(&mut desk, "a", value(body), 0, 0);
    assert_eq!(given, answers(&[(1, r#"{"Name":"n","SecretString":"s","VersionStages":null}"#), (2, body)]));
}

#[derive(Clone, Debug)]
enum Step {
    Ask {
        key: usize,
        refresh: bool,
    },
    /// The oldest fetch of a key ends, well or not.
    End {
        key: usize,
        fails: bool,
    },
    Wait {
        seconds: u64,
    },
    /// Upstream's values change.
    Rotate,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..3_usize, prop::bool::weighted(0.2)).prop_map(|(key, refresh)| Step::Ask { key, refresh }),
        3 => (0..3_usize, prop::bool::weighted(0.3)).prop_map(|(key, fails)| Step::End { key, fails }),
        2 => (1..200_u64).prop_map(|seconds| Step::Wait { seconds }),
        1 => Just(Step::Rotate),
    ];
    prop::collection::vec(step, 1..120)
}

/// A client and what its answer may be at the oldest.
#[derive(Debug)]
struct Waiting {
    who: u32,
    key: usize,
    asked: u64,
    refresh: bool,
}

proptest! {
    /// Whatever happens in whatever order: an answer is never older than the policy allows, a refresh never older than the request;
    /// one fetch per key at a time; everybody who waits is answered exactly once.
    #[test]
    fn no_answer_is_older_than_allowed(steps in steps(), while_s in 0..100_u64, error_s in 0..100_u64) {
        const TTL: u64 = 300;
        let with = Policy {
            stale_while_revalidate: Duration::from_secs(while_s),
            stale_if_error: Duration::from_secs(error_s),
            ..policy(TTL)
        };
        let mut desk = Desk::new(with, Serving::Yes);
        let names = ["a", "b", "c"];
        // Upstream reads when a fetch begins, the worst case: the value is (version, second it was read).
        let (mut now, mut version, mut who) = (1000_u64, 0_u64, 0_u32);
        let mut under_way: [Option<(u64, u64)>; 3] = [None; 3];
        let mut waiting: Vec<Waiting> = Vec::new();
        let read_at = |text: &str| text.split(' ').nth(1).and_then(|second| second.parse::<u64>().ok());
        for step in steps {
            match step {
                Step::Wait { seconds } => now += seconds,
                Step::Rotate => version += 1,
                Step::Ask { key, refresh: now_please } => {
                    who += 1;
                    let fetch = if now_please { refresh(names[key]) } else { fetch(names[key]) };
                    let (answer, start) = ask(&mut desk, who, &fetch, now);
                    if start {
                        prop_assert!(under_way[key].is_none(), "two fetches of one key");
                        under_way[key] = Some((version, now));
                    }
                    match answer {
                        Some(text) => {
                            prop_assert!(!now_please);
                            let read = read_at(&text).expect("failures are not remembered");
                            prop_assert!(now - read < TTL + while_s, "{} s old", now - read);
                        }
                        None => waiting.push(Waiting { who, key, asked: now, refresh: now_please }),
                    }
                }
                Step::End { key, fails } => {
                    let Some((version_then, began)) = under_way[key].take() else { continue };
                    let outcome = if fails { Err(Failure::Timeout(5)) } else { value(&format!("{version_then} {began}")) };
                    let (answered, again) = finish(&mut desk, names[key], outcome, began, now);
                    if again {
                        under_way[key] = Some((version, now));
                    }
                    for (who, text) in answered {
                        let index = waiting.iter().position(|waiting| waiting.who == who);
                        prop_assert!(index.is_some(), "answered twice");
                        let waiting = waiting.swap_remove(index.expect("checked"));
                        prop_assert_eq!(waiting.key, key);
                        let Some(read) = read_at(&text) else { continue };
                        if text == UNEXPECTED {
                            continue;
                        }
                        let allowed = if fails { TTL + error_s } else { TTL };
                        prop_assert!(!waiting.refresh || read >= waiting.asked, "a refresh from before it was asked for");
                        prop_assert!(now - read < allowed.max(now - began + 1), "{} s old", now - read);
                    }
                }
            }
        }
        for key in 0..3 {
            while under_way[key].take().is_some() {
                let (answered, again) = finish(&mut desk, names[key], Err(missing()), now, now);
                waiting.retain(|waiting| answered.iter().all(|(who, _)| *who != waiting.who));
                if again {
                    under_way[key] = Some((version, now));
                }
            }
        }
        prop_assert!(waiting.is_empty() && desk.is_idle(), "{:?}", waiting);
    }
}
