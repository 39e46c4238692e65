//! InvokeAsync, the operation of 2014: an event in the body, 202 as answer.

use super::invoke;
use crate::api::Api;
use crate::request::{Outcome, Request};
use std::sync::Arc;

pub fn invoke_async(api: &Arc<Api>, request: &Request) -> Outcome {
    invoke::event(api, request, invoke::EVENT_BYTES)
}
