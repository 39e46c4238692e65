//! What the caller of an invocation gets: a whole answer, or a stream.

use bytes::{Bytes, BytesMut};
use tokio::sync::{mpsc, oneshot};

/// How the caller takes the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wants {
    /// All at once, when it is complete; a streaming function's answer is collected, up to 6 MB.
    #[default]
    Whole,
    /// As it comes, where the function answers in streaming mode.
    Stream,
}

/// What the caller gets.
#[derive(Debug)]
pub struct Answer {
    /// The response, or the error's payload; empty while `stream` is there.
    pub payload: Bytes,
    /// `Unhandled` when the function or the platform failed.
    pub function_error: Option<String>,
    /// When it was there, or its first byte, ns of the monotonic clock.
    pub responded_ns: u64,
    /// What the runtime said that the response is.
    pub content_type: Option<String>,
    /// The response, where the function streams and the caller wants that.
    pub stream: Option<AnswerStream>,
}

/// Content type of a stream that begins with a JSON prelude and 8 NUL bytes (`lambda-platform.md` §1.9).
const HTTP_INTEGRATION: &str = "application/vnd.awslambda.http-integration-response";
/// Between prelude and body.
const SEPARATOR: [u8; 8] = [0; 8];
/// Longest prelude: it becomes HTTP headers.
const PRELUDE_BYTES_MAX: usize = 64 * 1024;

/// A response as it comes. When nobody reads, the function waits; dropping it throws the rest away and the function runs on.
#[derive(Debug)]
pub struct AnswerStream {
    chunks: mpsc::Receiver<Bytes>,
    end: oneshot::Receiver<StreamEnd>,
    has_prelude: bool,
    ahead: Option<Bytes>,
}

/// How a stream ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// All of it came.
    Complete,
    /// The function or the platform broke it off.
    Failed {
        /// For example `Runtime.ExitError`.
        error_type: String,
        /// The error as JSON.
        payload: Bytes,
    },
}

impl AnswerStream {
    pub(crate) fn new(
        chunks: mpsc::Receiver<Bytes>,
        end: oneshot::Receiver<StreamEnd>,
        content_type: Option<&str>,
    ) -> AnswerStream {
        AnswerStream { chunks, end, has_prelude: content_type == Some(HTTP_INTEGRATION), ahead: None }
    }

    /// The JSON (`statusCode`, `headers`, `cookies`) that comes before the body, where the content type announces one. It is no part
    /// of the chunks then. Without a separator in the first 64 KiB there is none, and nothing is lost.
    pub async fn prelude(&mut self) -> Option<Bytes> {
        if !std::mem::take(&mut self.has_prelude) {
            return None;
        }
        let mut seen = BytesMut::new();
        while let Some(chunk) = self.next().await {
            seen.extend_from_slice(&chunk);
            if let Some(at) = seen.windows(SEPARATOR.len()).position(|window| window == SEPARATOR) {
                let prelude = seen.split_to(at).freeze();
                let body = seen.split_off(SEPARATOR.len());
                self.ahead = (!body.is_empty()).then(|| body.freeze());
                return Some(prelude);
            }
            if seen.len() > PRELUDE_BYTES_MAX {
                break;
            }
        }
        self.ahead = (!seen.is_empty()).then(|| seen.freeze());
        None
    }

    /// The next bytes; `None` when there are no more: then ask for the [`AnswerStream::end`].
    pub async fn next(&mut self) -> Option<Bytes> {
        match self.ahead.take() {
            Some(chunk) => Some(chunk),
            None => self.chunks.recv().await,
        }
    }

    /// How it ended; what was not read is thrown away.
    pub async fn end(self) -> StreamEnd {
        let AnswerStream { mut chunks, end, .. } = self;
        while chunks.recv().await.is_some() {}
        end.await.unwrap_or_else(|_| StreamEnd::Failed {
            error_type: "Sandbox.Failure".to_owned(),
            payload: Bytes::from_static(
                b"{\"errorType\":\"Sandbox.Failure\",\"errorMessage\":\"The execution environment failed\"}",
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn check(content_type: &str, chunks: &[&'static str], prelude: Option<&str>, body: &str) {
        let (send, receive) = mpsc::channel(8);
        let (end, ended) = oneshot::channel();
        for chunk in chunks {
            send.send(Bytes::from_static(chunk.as_bytes())).await.expect("room");
        }
        drop(send);
        end.send(StreamEnd::Complete).expect("read below");
        let mut stream = AnswerStream::new(receive, ended, Some(content_type));
        assert_eq!(stream.prelude().await.as_deref(), prelude.map(str::as_bytes), "{chunks:?}");
        let mut all = Vec::new();
        while let Some(chunk) = stream.next().await {
            all.extend_from_slice(&chunk);
        }
        assert_eq!(String::from_utf8_lossy(&all), body, "{chunks:?}");
        assert_eq!(stream.end().await, StreamEnd::Complete);
    }

    #[tokio::test]
    async fn a_prelude_is_cut_off_wherever_chunks_are_cut() {
        check(HTTP_INTEGRATION, &["{}\0\0\0\0\0\0\0\0hello"], Some("{}"), "hello").await;
        check(HTTP_INTEGRATION, &["{", "}\0\0\0", "\0\0\0\0\0he", "llo"], Some("{}"), "hello").await;
        check(HTTP_INTEGRATION, &["{}\0\0\0\0\0\0\0\0"], Some("{}"), "").await;
        check(HTTP_INTEGRATION, &["{}", "hello"], None, "{}hello").await;
        check("text/plain", &["{}\0\0\0\0\0\0\0\0", "hello"], None, "{}\0\0\0\0\0\0\0\0hello").await;
    }

    #[tokio::test]
    async fn a_stream_whose_env_is_gone_has_failed() {
        let (chunks, receive) = mpsc::channel(1);
        let (end, ended) = oneshot::channel();
        drop((chunks, end));
        let end = AnswerStream::new(receive, ended, None).end().await;
        assert!(matches!(end, StreamEnd::Failed { error_type, .. } if error_type == "Sandbox.Failure"));
    }
}
