//! Responses that are streamed to their caller, through a whole env.

#![allow(clippy::unwrap_used, reason = "test code, but clippy knows only test functions")]

use danki_record::{Start, Status};
use danki_testkit::{Lab, Settings, StreamEnd, Streamed, skipped};
use serde_json::json;

const STREAMING: &str = "
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
export const handler = awslambda.streamifyResponse(async (event, stream) => {
  if (event.http) stream = awslambda.HttpResponseStream.from(stream, { statusCode: 201 });
  stream.write('first');
  await pause(300);
  if (event.exit) process.exit(1);
  stream.write('second');
  stream.end();
});
";

fn body(streamed: &Streamed) -> String {
    streamed.chunks.iter().map(|(_, chunk)| String::from_utf8_lossy(chunk)).collect()
}

#[test]
fn a_caller_gets_the_first_byte_before_the_last_is_written() {
    if skipped("streaming") {
        return;
    }
    let lab = Lab::start("streaming", Settings::default()).unwrap();
    let mut spec = lab.write("index.mjs", STREAMING).unwrap();
    spec.memory = 1_769.try_into().unwrap();
    let function = lab.deploy(spec).unwrap();
    for start in [Start::Cold, Start::Warm] {
        let streamed = function.stream(&json!({"http": true})).unwrap();
        assert_eq!(streamed.prelude.as_deref(), Some(&b"{\"statusCode\":201}"[..]));
        let got = (body(&streamed), streamed.end.clone());
        assert_eq!(got, ("firstsecond".to_owned(), Some(StreamEnd::Complete)));
        let (first, last) = (streamed.chunks.first().unwrap().0, streamed.chunks.last().unwrap().0);
        assert!(last - first > 200_000_000, "{} ms", (last - first) / 1_000_000);
        let invocation = streamed.reply.unwrap().invocation;
        assert_eq!((invocation.start, invocation.status, invocation.response_bytes), (start, Status::Ok, 37));
        assert!(invocation.responded_ns < first && invocation.finished_ns > first + 200_000_000);
    }
    let whole = function.invoke(&json!({})).unwrap();
    assert_eq!(whole.text(), "firstsecond", "a caller that takes it whole gets it whole");
    let broken = function.stream(&json!({"exit": true})).unwrap();
    assert_eq!(body(&broken), "first");
    let Some(StreamEnd::Failed { error_type, payload }) = broken.end else { panic!("{:?}", broken.end) };
    assert!(!error_type.is_empty() && !payload.is_empty(), "{error_type} {payload:?}");
    let after = function.stream(&json!({})).unwrap();
    assert_eq!((body(&after), after.end), ("firstsecond".to_owned(), Some(StreamEnd::Complete)));
    assert_eq!(lab.stop().unwrap().left, Vec::<String>::new());
}
