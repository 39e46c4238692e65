//! Every operation of Lambda's API: method, path, name, and what answers it. The router, the list of what is not offered and the
//! documentation are derived from this table.

use crate::api::Api;
use crate::ops;
use crate::request::{Outcome, Request, percent_decode};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// An operation under way.
pub type Later = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// What answers an operation.
#[derive(Clone, Copy)]
pub enum Handler {
    /// At once, from the account.
    Now(fn(&Arc<Api>, &Request) -> Outcome),
    /// It waits for the host.
    Later(fn(Arc<Api>, Request) -> Later),
    /// danki does not have it; the caller is told so.
    Missing,
}

/// One row: method, path template, operation, handler.
pub type Route = (&'static str, &'static str, &'static str, Handler);

macro_rules! later {
    ($handler:path) => {
        Handler::Later(|api, request| Box::pin($handler(api, request)))
    };
}

use Handler::{Missing, Now};

/// Paths as botocore's model has them. The first that fits wins.
#[rustfmt::skip]
pub const ROUTES: &[Route] = &[
    ("POST", "/2015-03-31/functions/{FunctionName}/invocations", "Invoke", later!(ops::invoke::invoke)),
    ("POST", "/2021-11-15/functions/{FunctionName}/response-streaming-invocations", "InvokeWithResponseStream", later!(ops::invoke_stream::invoke_with_response_stream)),
    ("POST", "/2014-11-13/functions/{FunctionName}/invoke-async", "InvokeAsync", Now(ops::invoke_async::invoke_async)),
    ("POST", "/2015-03-31/functions", "CreateFunction", Now(ops::create_function::create_function)),
    ("GET", "/2015-03-31/functions", "ListFunctions", Now(ops::get_function::list_functions)),
    ("GET", "/2015-03-31/functions/{FunctionName}", "GetFunction", Now(ops::get_function::get_function)),
    ("DELETE", "/2015-03-31/functions/{FunctionName}", "DeleteFunction", Now(ops::delete_function::delete_function)),
    ("GET", "/2015-03-31/functions/{FunctionName}/configuration", "GetFunctionConfiguration", Now(ops::get_function::get_function_configuration)),
    ("PUT", "/2015-03-31/functions/{FunctionName}/configuration", "UpdateFunctionConfiguration", Now(ops::update_configuration::update_function_configuration)),
    ("PUT", "/2015-03-31/functions/{FunctionName}/code", "UpdateFunctionCode", Now(ops::update_code::update_function_code)),
    ("POST", "/2015-03-31/functions/{FunctionName}/versions", "PublishVersion", Now(ops::versions::publish_version)),
    ("GET", "/2015-03-31/functions/{FunctionName}/versions", "ListVersionsByFunction", Now(ops::versions::list_versions)),
    ("POST", "/2015-03-31/functions/{FunctionName}/aliases", "CreateAlias", Now(ops::aliases::create_alias)),
    ("GET", "/2015-03-31/functions/{FunctionName}/aliases", "ListAliases", Now(ops::aliases::list_aliases)),
    ("GET", "/2015-03-31/functions/{FunctionName}/aliases/{Name}", "GetAlias", Now(ops::aliases::get_alias)),
    ("PUT", "/2015-03-31/functions/{FunctionName}/aliases/{Name}", "UpdateAlias", Now(ops::aliases::update_alias)),
    ("DELETE", "/2015-03-31/functions/{FunctionName}/aliases/{Name}", "DeleteAlias", Now(ops::aliases::delete_alias)),
    ("POST", "/2015-03-31/functions/{FunctionName}/policy", "AddPermission", Now(ops::permissions::add)),
    ("GET", "/2015-03-31/functions/{FunctionName}/policy", "GetPolicy", Now(ops::permissions::get)),
    ("DELETE", "/2015-03-31/functions/{FunctionName}/policy/{StatementId}", "RemovePermission", Now(ops::permissions::remove)),
    ("PUT", "/2017-10-31/functions/{FunctionName}/concurrency", "PutFunctionConcurrency", later!(ops::concurrency::put)),
    ("DELETE", "/2017-10-31/functions/{FunctionName}/concurrency", "DeleteFunctionConcurrency", later!(ops::concurrency::delete)),
    ("GET", "/2019-09-30/functions/{FunctionName}/concurrency", "GetFunctionConcurrency", Now(ops::concurrency::get)),
    ("PUT", "/2019-09-30/functions/{FunctionName}/provisioned-concurrency", "PutProvisionedConcurrencyConfig", Now(ops::provisioned::put)),
    ("GET", "/2019-09-30/functions/{FunctionName}/provisioned-concurrency", "GetProvisionedConcurrencyConfig", Now(ops::provisioned::get_or_list)),
    ("DELETE", "/2019-09-30/functions/{FunctionName}/provisioned-concurrency", "DeleteProvisionedConcurrencyConfig", Now(ops::provisioned::delete)),
    ("GET", "/2016-08-19/account-settings", "GetAccountSettings", later!(ops::account_settings::get)),
    ("POST", "/2018-10-31/layers/{LayerName}/versions", "PublishLayerVersion", Now(ops::layers::publish)),
    ("GET", "/2018-10-31/layers/{LayerName}/versions", "ListLayerVersions", Now(ops::layers::list_versions)),
    ("GET", "/2018-10-31/layers/{LayerName}/versions/{VersionNumber}", "GetLayerVersion", Now(ops::layers::get)),
    ("DELETE", "/2018-10-31/layers/{LayerName}/versions/{VersionNumber}", "DeleteLayerVersion", Now(ops::layers::delete)),
    ("GET", "/2018-10-31/layers", "ListLayers", Now(ops::layers::list_or_by_arn)),
    ("GET", "/2017-03-31/tags/{Resource}", "ListTags", Now(ops::tags::list)),
    ("POST", "/2017-03-31/tags/{Resource}", "TagResource", Now(ops::tags::tag)),
    ("DELETE", "/2017-03-31/tags/{Resource}", "UntagResource", Now(ops::tags::untag)),
    ("PUT", "/2019-09-25/functions/{FunctionName}/event-invoke-config", "PutFunctionEventInvokeConfig", Now(ops::event_invoke::put)),
    ("POST", "/2019-09-25/functions/{FunctionName}/event-invoke-config", "UpdateFunctionEventInvokeConfig", Now(ops::event_invoke::update)),
    ("GET", "/2019-09-25/functions/{FunctionName}/event-invoke-config", "GetFunctionEventInvokeConfig", Now(ops::event_invoke::get)),
    ("DELETE", "/2019-09-25/functions/{FunctionName}/event-invoke-config", "DeleteFunctionEventInvokeConfig", Now(ops::event_invoke::delete)),
    ("GET", "/2019-09-25/functions/{FunctionName}/event-invoke-config/list", "ListFunctionEventInvokeConfigs", Now(ops::event_invoke::list)),
    ("POST", "/2021-10-31/functions/{FunctionName}/url", "CreateFunctionUrlConfig", Now(ops::urls::create)),
    ("GET", "/2021-10-31/functions/{FunctionName}/url", "GetFunctionUrlConfig", Now(ops::urls::get)),
    ("PUT", "/2021-10-31/functions/{FunctionName}/url", "UpdateFunctionUrlConfig", Now(ops::urls::update)),
    ("DELETE", "/2021-10-31/functions/{FunctionName}/url", "DeleteFunctionUrlConfig", Now(ops::urls::delete)),
    ("GET", "/2021-10-31/functions/{FunctionName}/urls", "ListFunctionUrlConfigs", Now(ops::urls::list)),
    ("PUT", "/2024-08-31/functions/{FunctionName}/recursion-config", "PutFunctionRecursionConfig", Now(ops::recursion::put)),
    ("GET", "/2024-08-31/functions/{FunctionName}/recursion-config", "GetFunctionRecursionConfig", Now(ops::recursion::get)),
    ("PUT", "/2021-07-20/functions/{FunctionName}/runtime-management-config", "PutRuntimeManagementConfig", Now(ops::runtime_management::put)),
    ("GET", "/2021-07-20/functions/{FunctionName}/runtime-management-config", "GetRuntimeManagementConfig", Now(ops::runtime_management::get)),
    // danki's own: where answers of GetFunction and GetLayerVersion lead, and what `danki logs` reads.
    ("GET", "/_danki/code/{FunctionName}/{Version}", "code", Now(ops::code_location::code_location)),
    ("GET", "/_danki/layer/{LayerName}/{VersionNumber}", "layer", Now(ops::layers::content)),
    ("GET", "/_danki/logs/{FunctionName}", "logs", later!(ops::tail_logs::tail_logs)),
    // What danki does not have.
    ("GET", "/2020-06-30/functions/{FunctionName}/code-signing-config", "GetFunctionCodeSigningConfig", Missing),
    ("PUT", "/2020-06-30/functions/{FunctionName}/code-signing-config", "PutFunctionCodeSigningConfig", Missing),
    ("DELETE", "/2020-06-30/functions/{FunctionName}/code-signing-config", "DeleteFunctionCodeSigningConfig", Missing),
    ("POST", "/2020-04-22/code-signing-configs", "CreateCodeSigningConfig", Missing),
    ("GET", "/2020-04-22/code-signing-configs", "ListCodeSigningConfigs", Missing),
    ("GET", "/2020-04-22/code-signing-configs/{CodeSigningConfigArn}", "GetCodeSigningConfig", Missing),
    ("PUT", "/2020-04-22/code-signing-configs/{CodeSigningConfigArn}", "UpdateCodeSigningConfig", Missing),
    ("DELETE", "/2020-04-22/code-signing-configs/{CodeSigningConfigArn}", "DeleteCodeSigningConfig", Missing),
    ("GET", "/2020-04-22/code-signing-configs/{CodeSigningConfigArn}/functions", "ListFunctionsByCodeSigningConfig", Missing),
    ("POST", "/2015-03-31/event-source-mappings", "CreateEventSourceMapping", Missing),
    ("GET", "/2015-03-31/event-source-mappings", "ListEventSourceMappings", Missing),
    ("GET", "/2015-03-31/event-source-mappings/{UUID}", "GetEventSourceMapping", Missing),
    ("PUT", "/2015-03-31/event-source-mappings/{UUID}", "UpdateEventSourceMapping", Missing),
    ("DELETE", "/2015-03-31/event-source-mappings/{UUID}", "DeleteEventSourceMapping", Missing),
    ("POST", "/2018-10-31/layers/{LayerName}/versions/{VersionNumber}/policy", "AddLayerVersionPermission", Missing),
    ("GET", "/2018-10-31/layers/{LayerName}/versions/{VersionNumber}/policy", "GetLayerVersionPolicy", Missing),
    ("DELETE", "/2018-10-31/layers/{LayerName}/versions/{VersionNumber}/policy/{StatementId}", "RemoveLayerVersionPermission", Missing),
    ("PUT", "/2025-11-30/functions/{FunctionName}/function-scaling-config", "PutFunctionScalingConfig", Missing),
    ("GET", "/2025-11-30/functions/{FunctionName}/function-scaling-config", "GetFunctionScalingConfig", Missing),
    ("GET", "/2025-12-01/functions/{FunctionName}/durable-executions", "ListDurableExecutionsByFunction", Missing),
    ("POST", "/2025-12-01/durable-executions/{DurableExecutionArn}/{Verb}", "a durable execution's operation", Missing),
    ("GET", "/2025-12-01/durable-executions/{DurableExecutionArn}", "GetDurableExecution", Missing),
    ("GET", "/2025-12-01/durable-executions/{DurableExecutionArn}/{Part}", "GetDurableExecutionHistory or GetDurableExecutionState", Missing),
    ("DELETE", "/2025-12-01/durable-executions/{DurableExecutionArn}", "DeleteDurableExecution", Missing),
    ("POST", "/2025-12-01/durable-execution-callbacks/{CallbackId}/{Verb}", "a durable execution's callback", Missing),
    ("POST", "/2025-11-30/capacity-providers", "CreateCapacityProvider", Missing),
    ("GET", "/2025-11-30/capacity-providers", "ListCapacityProviders", Missing),
    ("GET", "/2025-11-30/capacity-providers/{CapacityProviderName}", "GetCapacityProvider", Missing),
    ("PUT", "/2025-11-30/capacity-providers/{CapacityProviderName}", "UpdateCapacityProvider", Missing),
    ("DELETE", "/2025-11-30/capacity-providers/{CapacityProviderName}", "DeleteCapacityProvider", Missing),
    ("GET", "/2025-11-30/capacity-providers/{CapacityProviderName}/function-versions", "ListFunctionVersionsByCapacityProvider", Missing),
    ("GET", "/2026-07-09/resource-policy/{ResourceArn}", "GetResourcePolicy", Missing),
    ("PUT", "/2026-07-09/resource-policy/{ResourceArn}", "PutResourcePolicy", Missing),
    ("DELETE", "/2026-07-09/resource-policy/{ResourceArn}", "DeleteResourcePolicy", Missing),
];

/// The route of a request, and the values of its template's parameters.
pub fn find(method: &str, path: &str) -> Option<(&'static Route, Vec<(&'static str, String)>)> {
    let asked: Vec<&str> = path.trim_matches('/').split('/').collect();
    ROUTES.iter().filter(|route| route.0 == method).find_map(|route| Some((route, fit(route.1, &asked)?)))
}

fn fit(template: &'static str, asked: &[&str]) -> Option<Vec<(&'static str, String)>> {
    let mut parameters = Vec::new();
    let mut parts = template.trim_matches('/').split('/');
    for asked in asked {
        let part = parts.next()?;
        match part.strip_prefix('{').and_then(|p| p.strip_suffix('}')) {
            Some(name) if !asked.is_empty() => parameters.push((name, percent_decode(asked))),
            None if part == *asked => {}
            _ => return None,
        }
    }
    parts.next().is_none().then_some(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_lead_to_operations() {
        let check = |method: &str, path: &str, expect: &str| {
            let name = find(method, path).map_or("nothing", |(route, _)| route.2);
            assert_eq!(name, expect, "{method} {path}");
        };
        check("POST", "/2015-03-31/functions/f/invocations", "Invoke");
        check("POST", "/2015-03-31/functions/arn%3Aaws%3Alambda/invocations", "Invoke");
        check("GET", "/2015-03-31/functions/", "ListFunctions");
        check("GET", "/2015-03-31/functions/f", "GetFunction");
        check("POST", "/2014-11-13/functions/f/invoke-async/", "InvokeAsync");
        check("GET", "/2015-03-31/functions/f/aliases/live", "GetAlias");
        check("PATCH", "/2015-03-31/functions/f", "nothing");
        check("GET", "/2015-03-31/functions/f/x/y/z", "nothing");
        check("GET", "/", "nothing");
        let (_, parameters) = find("GET", "/2015-03-31/functions/a%3Ab").expect("a route");
        assert_eq!(parameters, [("FunctionName", "a:b".to_owned())]);
    }

    #[test]
    fn no_row_hides_another() {
        for (index, route) in ROUTES.iter().enumerate() {
            let example: String = route.1.replace(['{', '}'], "");
            let found = ROUTES.iter().position(|r| {
                r.0 == route.0
                    && fit(r.1, &example.trim_matches('/').split('/').collect::<Vec<_>>()).is_some()
            });
            assert_eq!(found, Some(index), "{} {}", route.0, route.1);
        }
    }

    proptest! {
        #[test]
        fn any_path_is_routed_or_not(path in "(/[ -~]{0,12}){0,6}") {
            find("GET", &path);
        }
    }
}
