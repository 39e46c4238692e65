use super::*;
use proptest::prelude::*;
use serde_json::json;

/// 80 ms in a function that called DynamoDB, which answered 429; one annotation of each kind.
fn trace() -> Trace {
    let mut segment = Entity::new("a".to_owned(), "orders", 1_000, Some(80_001_000));
    segment.origin = Some("AWS::Lambda".to_owned());
    segment.details = json!({ "annotations": { "tier": "gold", "size": 3 }, "user": "ann" })
        .as_object()
        .expect("an object")
        .clone();
    let mut call = Entity::new("b".to_owned(), "dynamodb GetItem", 2_000, Some(90_001_000));
    call.outcome = Outcome::Throttle;
    let http = json!({ "http": { "request": { "url": "https://x/y", "method": "POST" }, "response": { "status": 429 } } });
    call.details = http.as_object().expect("an object").clone();
    Trace { id: "1".to_owned(), requests: Vec::new(), sampled: true, entities: vec![segment, call] }
}

#[test]
fn an_expression_takes_the_traces_that_it_means() {
    let check = |text: &str, takes: bool| {
        let filter = Filter::parse(text).unwrap_or_else(|bad| panic!("{text}: {bad:?}"));
        assert_eq!(filter.takes(&trace()), takes, "{text}: {filter:?}");
    };
    check("responsetime <= 0.1", true);
    check("responsetime > 0.08", false);
    check("responsetime = 0.08", true);
    check("duration > 0.08 AND responsetime < 0.09", true);
    check("throttle", true);
    check("!throttle", false);
    check("error = false", false);
    check("fault != true", true);
    check("ok OR http.status = 429", true);
    check("ok or http.status = 429 and http.method = \"GET\"", false);
    check("(ok OR http.status >= 400) AND NOT partial", true);
    check("service(\"orders\") and service(\"dynamodb\")", true);
    check("service(\"s3\")", false);
    check("annotation.tier = \"gold\"", true);
    check("annotation[tier] BEGINSWITH \"sil\"", false);
    check("annotation[\"size\"] >= 3", true);
    check("http.url CONTAINS \"/y\" AND http.url ENDSWITH \"y\"", true);
    check("user = \"a\\nn\"", true);
}

#[test]
fn a_mistake_is_told_with_its_place() {
    let check = |text: &str, at: usize, word: &str| {
        let bad = Filter::parse(text).expect_err(text);
        assert!(bad.at == at && bad.what.contains(word), "{text}: {bad:?}");
    };
    check("", 0, "keyword");
    check("response <= 1", 0, "responsetime");
    check("responsetime <= ", 16, "number");
    check("responsetime 1", 13, "<=");
    check("responsetime < \"x\"", 18, "number");
    check("(ok", 3, "parenthesis");
    check("ok fault", 3, "AND");
    check("user = \"x", 8, "quote");
    check("http.url < \"x\"", 9, "CONTAINS");
    check("error = maybe", 8, "true");
    check(&"!".repeat(100), 64, "parentheses");
    check(&"(".repeat(9_000), 8_192, "bytes");
}

fn any_text() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "responsetime",
        "duration",
        "ok",
        "fault",
        "!",
        "(",
        ")",
        "AND",
        "OR",
        "NOT",
        "<=",
        "=",
        "0.1",
        "\"x\"",
        "service",
        "annotation.a",
        "annotation[",
        "]",
        "http.url",
        "CONTAINS",
        " ",
        "é",
        "\\",
        "\"",
    ]);
    prop_oneof![prop::collection::vec(words, 0..12).prop_map(|words| words.join(" ")), any::<String>()]
}

proptest! {
    #[test]
    fn whatever_the_text_it_is_read_or_its_mistake_lies_inside(text in any_text()) {
        match Filter::parse(&text) {
            Ok(filter) => {
                let takes = filter.takes(&trace());
                let negated = Filter::parse(&format!("NOT ({text})")).expect("a filter in parentheses is one");
                prop_assert_eq!(negated.takes(&trace()), !takes);
            }
            Err(bad) => {
                prop_assert!(bad.at <= text.len() && text.is_char_boundary(bad.at));
                prop_assert!(!bad.what.is_empty());
            }
        }
    }

    #[test]
    fn a_bound_splits_traces_in_two(bound in 0.0..0.2_f64) {
        let takes = |text: String| Filter::parse(&text).expect("fine").takes(&trace());
        prop_assert_ne!(takes(format!("responsetime <= {bound}")), takes(format!("responsetime > {bound}")));
        prop_assert_eq!(takes(format!("responsetime <= {bound}")), 0.08 <= bound);
    }
}
