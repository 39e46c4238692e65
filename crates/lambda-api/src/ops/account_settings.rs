//! GetAccountSettings.

use crate::api::Api;
use crate::code::UNZIPPED_BYTES;
use crate::request::{Outcome, Reply, Request};
use serde_json::json;
use std::sync::Arc;

/// All code of an account: 75 GB (AWS's quotas page).
const TOTAL_CODE_BYTES: u64 = 75 * 1024 * 1024 * 1024;

pub async fn get(api: Arc<Api>, _request: Request) -> Outcome {
    let limits = api.fleet.host().await?.account();
    let account = api.account();
    let versions = account.functions.values().flat_map(|f| f.versions.values().chain([&f.latest]));
    let used: u64 = versions.map(|v| v.code.size).sum();
    Ok(Reply::json(
        200,
        &json!({
            "AccountLimit": {
                "TotalCodeSize": TOTAL_CODE_BYTES,
                "CodeSizeUnzipped": UNZIPPED_BYTES,
                "CodeSizeZipped": crate::code::ZIP_BYTES,
                "ConcurrentExecutions": limits.limit,
                "UnreservedConcurrentExecutions": limits.unreserved,
            },
            "AccountUsage": { "TotalCodeSize": used, "FunctionCount": account.functions.len() },
        }),
    ))
}
