//! Templates as people write them.

use danki_sam::{Alias, Code, Deployment, Front, ImageConfig, Payload, Projection, Template, Url, read};

fn with(parameters: &[(&str, &str)]) -> Deployment {
    let parameters = parameters.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Deployment { parameters, ..Deployment::default() }
}

fn ok(text: &str) -> Template {
    read(text, &Deployment::default()).unwrap_or_else(|error| panic!("{error}"))
}

const SHOP: &str = r#"
AWSTemplateFormatVersion: '2010-09-09'
Transform: AWS::Serverless-2016-10-31
Parameters:
  Stage: { Type: String, Default: dev, AllowedValues: [dev, prod] }
Conditions:
  IsProd: !Equals [!Ref Stage, prod]
Globals:
  Function:
    Runtime: nodejs20.x
    Timeout: 10
    Environment:
      Variables: { STAGE: !Ref Stage, PORT: 8080 }
    Layers: [!Ref Shared]
Resources:
  Shared:
    Type: AWS::Serverless::LayerVersion
    Properties: { LayerName: shared, ContentUri: layers/shared }
  Orders:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: src/orders
      Handler: index.handler
      MemorySize: 256
      AutoPublishAlias: live
      ProvisionedConcurrencyConfig: { ProvisionedConcurrentExecutions: !If [IsProd, 20, 1] }
      Environment:
        Variables: { TABLE: !Ref Table, URL: !Sub 'https://${Api}.example/${Stage}' }
      Policies: [{ DynamoDBCrudPolicy: { TableName: !Ref Table } }]
      Tracing: Active
      Events:
        List: { Type: Api, Properties: { Path: /orders, Method: get, RestApiId: !Ref Api } }
        One: { Type: HttpApi, Properties: { Path: '/orders/{id}', Method: any } }
        Nightly: { Type: Schedule, Properties: { Schedule: rate(1 day) } }
  Stream:
    Type: AWS::Serverless::Function
    Properties:
      InlineCode: 'exports.handler = awslambda.streamifyResponse(f)'
      Handler: index.handler
      FunctionUrlConfig: { AuthType: NONE, InvokeMode: RESPONSE_STREAM }
      ReservedConcurrentExecutions: 5
  OnlyProd:
    Type: AWS::Serverless::Function
    Condition: IsProd
    Properties: { Handler: a.b, CodeUri: src/prod }
  Api:
    Type: AWS::Serverless::Api
    Properties: { StageName: !Ref Stage }
  Table:
    Type: AWS::DynamoDB::Table
    Properties:
      AttributeDefinitions:
        - { AttributeName: id, AttributeType: S }
        - { AttributeName: at, AttributeType: N }
      KeySchema:
        - { AttributeName: id, KeyType: HASH }
        - { AttributeName: at, KeyType: RANGE }
  Simple:
    Type: AWS::Serverless::SimpleTable
    Properties: { PrimaryKey: { Name: key, Type: Number }, TableName: simple }
  Secret:
    Type: AWS::SecretsManager::Secret
    Properties: { Name: db/password, SecretString: '{"user":"a"}' }
  Parameter:
    Type: AWS::SSM::Parameter
    Properties: { Name: /shop/mode, Type: String, Value: !Ref Stage }
  Queue: { Type: AWS::SQS::Queue }
  Role: { Type: AWS::IAM::Role, Properties: { AssumeRolePolicyDocument: !Something strange } }
Outputs:
  Arn: { Value: !GetAtt Orders.Arn }
  Elsewhere: { Value: !ImportValue other }
"#;

#[test]
fn functions_take_globals_and_their_own() {
    let shop = ok(SHOP);
    let names: Vec<&str> = shop.functions.iter().map(|f| f.id.as_str()).collect();
    assert_eq!(names, ["Orders", "Stream"]);
    let orders = &shop.functions[0];
    assert_eq!((orders.name.as_str(), orders.memory.mb(), orders.timeout_ms), ("danki-Orders", 256, 10_000));
    assert_eq!(orders.code, Code::Path("src/orders".to_owned()));
    let environment: Vec<(&str, &str)> =
        orders.environment.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let url = "https://danki-Api.example/dev";
    assert_eq!(environment, [("PORT", "8080"), ("STAGE", "dev"), ("TABLE", "danki-Table"), ("URL", url)]);
    assert_eq!(orders.layers, ["arn:aws:lambda:us-east-1:000000000000:layer:shared:1"]);
    assert_eq!(orders.aliases, [Alias { name: "live".to_owned(), provisioned: Some(1) }]);
    assert!(orders.traced);
    let stream = &shop.functions[1];
    assert_eq!((stream.url, stream.reserved), (Some(Url { iam: false, streams: true }), Some(5)));
    assert!(matches!(&stream.code, Code::Inline(text) if text.starts_with("exports")));
}

#[test]
fn a_condition_decides_with_the_parameters() {
    let prod = read(SHOP, &with(&[("Stage", "prod")])).expect("read");
    assert_eq!(prod.functions.len(), 3);
    assert_eq!(prod.functions[0].aliases[0].provisioned, Some(20));
    assert_eq!(prod.routes[0].stage, "prod");
}

#[test]
fn routes_name_front_stage_and_payload() {
    let routes = ok(SHOP).routes;
    let told: Vec<_> = routes
        .iter()
        .map(|r| (r.front, r.stage.as_str(), r.method.as_str(), r.path.as_str(), r.payload, r.api.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            (Front::Rest, "dev", "GET", "/orders", Payload::V1, "Api"),
            (Front::Http, "$default", "ANY", "/orders/{id}", Payload::V2, "ServerlessHttpApi"),
        ]
    );
}

#[test]
fn services_are_seeded() {
    let shop = ok(SHOP);
    let keys: Vec<_> = shop
        .tables
        .iter()
        .map(|t| (t.name.as_str(), t.hash.kind, t.range.as_ref().map(|r| r.name.as_str())))
        .collect();
    assert_eq!(keys, [("danki-Table", 'S', Some("at")), ("simple", 'N', None)]);
    assert_eq!(shop.secrets[0].text, "{\"user\":\"a\"}");
    assert_eq!((shop.parameters[0].name.as_str(), shop.parameters[0].value.as_str()), ("/shop/mode", "dev"));
    assert_eq!(shop.layers[0].content, "layers/shared");
    assert_eq!(shop.outputs["Arn"], "arn:aws:lambda:us-east-1:000000000000:function:danki-Orders");
}

#[test]
fn what_is_not_run_is_one_warning_each() {
    let told: Vec<String> =
        ok(SHOP).warnings.iter().map(|w| format!("{}:{}: {}", w.line, w.resource, w.what)).collect();
    assert_eq!(
        told,
        [
            "34:Orders: event Nightly (Schedule) does not call the function here",
            "67:Queue: AWS::SQS::Queue is not run here",
            "71:Outputs.Elsewhere: Fn::ImportValue is not offered",
        ]
    );
}

#[test]
fn plain_cloudformation_has_aliases_beside_functions() {
    let template = ok(r#"
Resources:
  F:
    Type: AWS::Lambda::Function
    Properties:
      FunctionName: f
      Runtime: python3.11
      Handler: app.handler
      Code: { S3Bucket: b, S3Key: k }
      TracingConfig: { Mode: Active }
  V:
    Type: AWS::Lambda::Version
    Properties:
      FunctionName: !Ref F
      ProvisionedConcurrencyConfig: { ProvisionedConcurrentExecutions: 3 }
  A:
    Type: AWS::Lambda::Alias
    Properties: { FunctionName: !Ref F, FunctionVersion: !GetAtt V.Version, Name: live }
  U:
    Type: AWS::Lambda::Url
    Properties: { TargetFunctionArn: !GetAtt F.Arn, AuthType: AWS_IAM }
"#);
    let f = &template.functions[0];
    assert_eq!(f.aliases, [Alias { name: "live".to_owned(), provisioned: Some(3) }]);
    assert_eq!(f.url, Some(Url { iam: true, streams: false }));
    assert_eq!(f.code, Code::S3 { bucket: "b".to_owned(), key: "k".to_owned() });
    assert!(f.traced && template.warnings.is_empty(), "{:?}", template.warnings);
}

#[test]
fn json_is_a_template_too() {
    let template = ok(r#"{"Resources": {"F": {"Type": "AWS::Lambda::Function",
        "Properties": {"PackageType": "Image", "Code": {"ImageUri": "image.tar"}, "MemorySize": 512,
        "ImageConfig": {"Command": ["app.handler"], "WorkingDirectory": "/srv"}}}}}"#);
    let function = &template.functions[0];
    assert_eq!(function.code, Code::Image("image.tar".to_owned()));
    assert_eq!(function.runtime, None);
    let expect = ImageConfig {
        entry_point: None,
        command: Some(vec!["app.handler".to_owned()]),
        working_directory: Some("/srv".to_owned()),
    };
    assert_eq!(function.image_config, expect);
}

#[test]
fn a_vpc_is_kept_and_said_to_change_nothing() {
    let template = ok("
Resources:
  F:
    Type: AWS::Serverless::Function
    Properties: { Handler: a.b, Runtime: python3.11, VpcConfig: { SubnetIds: [s-1, s-2], SecurityGroupIds: [g] } }
");
    let vpc = template.functions[0].vpc.as_ref().expect("kept");
    assert_eq!((vpc.subnets.len(), vpc.security_groups.len()), (2, 1));
    assert!(template.warnings[0].what.contains("VpcConfig is kept"), "{:?}", template.warnings);
}

#[test]
fn indexes_have_keys_and_projections() {
    let table = |index: &str| {
        format!(
            "Resources:
  T:
    Type: AWS::DynamoDB::Table
    Properties:
      AttributeDefinitions:
        - {{ AttributeName: id, AttributeType: S }}
        - {{ AttributeName: at, AttributeType: N }}
      KeySchema: [{{ AttributeName: id, KeyType: HASH }}]
      GlobalSecondaryIndexes:
        - IndexName: by-at
          KeySchema: [{{ AttributeName: at, KeyType: HASH }}, {{ AttributeName: id, KeyType: RANGE }}]
          Projection: {{ ProjectionType: INCLUDE, NonKeyAttributes: [sum] }}
      LocalSecondaryIndexes:
        - {index}
"
        )
    };
    let template = ok(&table(
        "{ IndexName: l, KeySchema: [{ AttributeName: id, KeyType: HASH }, { AttributeName: at, KeyType: RANGE }], Projection: { ProjectionType: KEYS_ONLY } }",
    ));
    let told: Vec<_> = template.tables[0]
        .indexes
        .iter()
        .map(|i| {
            (i.name.as_str(), i.local, i.hash.kind, i.range.as_ref().map(|r| r.name.as_str()), &i.projection)
        })
        .collect();
    let include = Projection::Include(vec!["sum".to_owned()]);
    assert_eq!(
        told,
        [("by-at", false, 'N', Some("id"), &include), ("l", true, 'S', Some("at"), &Projection::KeysOnly)]
    );
    for (index, expect) in [
        ("{ IndexName: l }", "KeySchema has no HASH key"),
        ("{ KeySchema: [{ AttributeName: x, KeyType: HASH }] }", "\"x\" is not among AttributeDefinitions"),
    ] {
        let error = read(&table(index), &Deployment::default()).expect_err(index).to_string();
        assert!(error.contains(expect) && error.contains("LocalSecondaryIndexes"), "{error}");
    }
}

#[test]
fn errors_say_where_and_what_is_allowed() {
    let function = |properties: &str| {
        format!(
            "Resources:\n  F:\n    Type: AWS::Serverless::Function\n    Properties:\n      Handler: a.b\n      Runtime: nodejs20.x\n{properties}"
        )
    };
    for (text, expect) in [
        (function("      MemorySize: 64"), "line 7: Resources.F: MemorySize is \"64\"; allowed: 128 to 10240"),
        (function("      Timeout: [1]"), "line 7: Resources.F: Timeout is a list, not text"),
        (function("      Environment: { Variables: { A: { b: c } } }"), "Resources.F.Variables: A is a map, not text"),
        (function("      ProvisionedConcurrencyConfig: { ProvisionedConcurrentExecutions: 1 }"), "hint: add AutoPublishAlias: live"),
        (function("      CodeUri: !Ref Nobody"), "\"Nobody\" is neither a parameter nor a resource"),
        (function("      Events: { E: { Type: Api, Properties: { Path: orders, Method: get } } }"), "it begins with /"),
        ("Resources:\n  F: { Type: AWS::Serverless::Function, Properties: { Handler: a.b, Runtime: java21 } }".to_owned(), "java21"),
        ("Parameters:\n  P: { Type: String }\nResources: {}".to_owned(), "hint: give one: --parameter P=VALUE"),
        (function("      PackageType: Image"), "there is no ImageUri"),
        (function("      ImageUri: x.tar"), "ImageUri needs PackageType: Image"),
        ("Foo: 1".to_owned(), "there is no Resources section"),
    ] {
        let error = read(&text, &Deployment::default()).expect_err(&text).to_string();
        assert!(error.contains(expect), "{error}\nlacks {expect}");
    }
    let unknown = read(SHOP, &with(&[("Stag", "x")])).expect_err("unknown parameter").to_string();
    assert!(unknown.contains("it has: Stage"), "{unknown}");
    let value = read(SHOP, &with(&[("Stage", "x")])).expect_err("not allowed").to_string();
    assert!(value.contains("not one of dev, prod"), "{value}");
}

/// Names of names of names must neither hang nor fill the memory.
#[test]
fn doubling_names_end_in_an_error() {
    let mut text =
        "Resources:\n  R0: { Type: AWS::Lambda::Function, Properties: { FunctionName: xxxxxxxxxxxxxxxx } }\n"
            .to_owned();
    for i in 1..30 {
        let below = i - 1;
        text += &format!(
            "  R{i}: {{ Type: AWS::Lambda::Function, Properties: {{ FunctionName: !Sub '${{R{below}}}${{R{below}}}' }} }}\n"
        );
    }
    let error = read(&text, &Deployment::default()).expect_err("too much").to_string();
    assert!(error.contains("function calls are needed") || error.contains("is missing"), "{error}");
}
