use super::*;
use danki_load::Load;
use proptest::prelude::*;

/// A place with one function, and the sample experiment of the docs.
struct Fixture {
    dir: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Fixture {
        let dir = tempfile::tempdir().expect("a directory");
        fs::create_dir(dir.path().join("f")).expect("made");
        fs::write(dir.path().join("f/index.mjs"), "").expect("written");
        Fixture { dir }
    }

    fn parse(&self, text: &str, options: &Options) -> Result<Experiment, String> {
        Experiment::parse(text, "x.toml", self.dir.path(), options).map_err(|bad| match &bad.hint {
            Some(hint) => format!("{bad}\nhint: {hint}"),
            None => bad.to_string(),
        })
    }
}

const TWO: &str = r#"
name = "two"
event = { id = 1 }
repetitions = 3
[function]
dir = "f"
memory_mb = 256
environment = { AA = "1", BB = "1" }
[region]
rtt_ms = 2.5
[region.dynamodb]
rtt_ms = 4
[[variant]]
name = "a"
[[variant]]
name = "b"
environment = { BB = "2" }
event = { id = 2 }
[load]
kind = "sequence"
count = 100
[[expect]]
name = "ratio"
metric = "a.duration_ms.p50 / b.duration_ms.p50"
published = 2
within = 2
"#;

#[test]
fn a_file_becomes_an_experiment() {
    let fixture = Fixture::new();
    let e = fixture.parse(TWO, &Options::default()).expect("fine");
    assert_eq!((e.repetitions, e.seed, e.time_scale), (3, 1, 1.0));
    let [a, b] = e.variants.as_slice() else { panic!("two variants") };
    assert_eq!(a.function.environment.values().collect::<Vec<_>>(), ["1", "1"]);
    assert_eq!(b.function.environment.values().collect::<Vec<_>>(), ["1", "2"]);
    assert_eq!((a.event.as_str(), b.event.as_str()), ("{\"id\":1}", "{\"id\":2}"));
    assert_eq!((a.function.handler.as_str(), a.function.memory.mb()), ("index.handler", 256));
    assert_eq!(e.region.path.rtt_us, 2_500);
    assert_eq!(e.region.paths["dynamodb"].rtt_us, 4_000);
    let quick =
        fixture.parse(TWO, &Options { quick: true, seed: Some(9), ..Options::default() }).expect("fine");
    assert_eq!((quick.repetitions, quick.seed), (1, 9));
    assert_eq!(quick.load, Load::Sequence { count: 10, gaps_ms: vec![0.0] });
}

#[test]
fn mistakes_are_told_with_their_place() {
    let fixture = Fixture::new();
    let check = |from: &str, to: &str, expect: &str| {
        let text = TWO.replace(from, to);
        assert_ne!(text, TWO, "{from}");
        let got = fixture.parse(&text, &Options::default()).expect_err(to);
        assert_eq!(got, expect, "{to}");
    };
    check("name = \"two\"\n", "", "x.toml:1: missing key `name`");
    check("\"two\"", "\"Two!\"", "x.toml:2: name \"Two!\" is not 1 to 40 of a-z 0-9 - _");
    check("count", "conut", "x.toml:21: unknown key \"conut\"\nhint: did you mean \"count\"?");
    check("count = 100", "count = 0", "x.toml:19: count = 0 is outside 1 to 1000000");
    check("repetitions = 3", "repetitions = 0", "x.toml:4: repetitions = 0 is outside 1 to 1000");
    check("memory_mb = 256", "memory_mb = 64", "x.toml:13: memory size 64 MB is outside 128 to 10240 MB");
    check("\"f\"", "\"f\"\ntimeout_s = 0.5", "x.toml:14: timeout_s = 0.5 is outside 1 to 900");
    check("rtt_ms = 2.5", "rtt_ms = -1", "x.toml:10: rtt_ms = -1 is outside 0 to 1000");
    check("rtt_ms = 4", "loss = 2", "x.toml:12: loss = 2 is outside 0 to 1");
    check("name = \"b\"", "name = \"a\"", "x.toml:15: two variants are named \"a\"");
    check(
        "a.duration_ms.p50 /",
        "c.duration_ms.p50 /",
        "x.toml:22: metric \"c.duration_ms.p50\" names no variant of the experiment\nhint: variants are: a, b",
    );
    check(
        "published = 2\n",
        "",
        "x.toml:22: within as a factor needs a published figure above 0\nhint: add published = …, or give within = { min = …, max = … }",
    );
    let gone =
        fixture.parse(&TWO.replace("\"f\"", "\"g\""), &Options::default()).expect_err("no such directory");
    assert!(gone.starts_with("x.toml:13: dir "), "{gone}");
    let scale = Options { time_scale: Some(11.0), ..Options::default() };
    let scaled = fixture.parse(TWO, &scale).expect_err("too much");
    assert!(scaled.contains("time_scale = 11 is outside 1 to 10"), "{scaled}");
}

const TEMPLATE: &str = "
Transform: AWS::Serverless-2016-10-31
Parameters:
  Stage: { Type: String, Default: dev }
Globals:
  Function: { Runtime: nodejs20.x, Timeout: 10, MemorySize: 512 }
Resources:
  Shared: { Type: AWS::Serverless::LayerVersion, Properties: { LayerName: shared, ContentUri: layer } }
  Orders:
    Type: AWS::Serverless::Function
    Properties:
      FunctionName: !Sub 'orders-${Stage}'
      CodeUri: f
      Handler: index.handler
      AutoPublishAlias: live
      ProvisionedConcurrencyConfig: { ProvisionedConcurrentExecutions: 2 }
      Layers: [!Ref Shared]
      Tracing: Active
      Environment: { Variables: { TABLE: !Ref Table, AA: below } }
  Inline: { Type: AWS::Serverless::Function, Properties: { Handler: a.b, InlineCode: x } }
  Table: { Type: AWS::Serverless::SimpleTable, Properties: { TableName: !Sub 't-${Stage}' } }
  Queue: { Type: AWS::SQS::Queue }
";

const OF_TEMPLATE: &str = r#"
name = "x"
[function]
template = "app/template.yaml"
resource = "Orders"
environment = { AA = "above" }
[[variant]]
name = "as-it-is"
[[variant]]
name = "prod"
memory_mb = 1024
parameters = { Stage = "prod" }
provisioned_concurrency = 5
"#;

impl Fixture {
    fn with_template() -> Fixture {
        let fixture = Fixture::new();
        for dir in ["app", "app/f", "app/layer"] {
            fs::create_dir(fixture.dir.path().join(dir)).expect("made");
        }
        fs::write(fixture.dir.path().join("app/f/index.mjs"), "").expect("written");
        fs::write(fixture.dir.path().join("app/template.yaml"), TEMPLATE).expect("written");
        fixture
    }
}

#[test]
fn a_template_gives_what_the_file_does_not_say() {
    let fixture = Fixture::with_template();
    let e = fixture.parse(OF_TEMPLATE, &Options::default()).expect("fine");
    let [a, b] = e.variants.as_slice() else { panic!("two variants") };
    let f = &a.function;
    assert_eq!((f.name.as_str(), f.memory.mb(), f.timeout_ms), ("orders-dev", 512, 10_000));
    assert_eq!((f.environment["TABLE"].as_str(), f.environment["AA"].as_str()), ("t-dev", "above"));
    assert!(f.code.ends_with("app/f") && f.layers[0].ends_with("app/layer"), "{f:?}");
    assert_eq!((a.provisioned_concurrency, b.provisioned_concurrency), (Some(2), Some(5)));
    assert_eq!((b.function.name.as_str(), b.function.memory.mb()), ("orders-prod", 1_024));
    let tables = &e.region.dynamodb.as_ref().expect("the template has tables").tables;
    assert_eq!(tables.iter().map(|t| t.name.as_str()).collect::<Vec<_>>(), ["t-dev", "t-prod"]);
    assert_eq!(e.xray_sampling, Some(1.0), "Tracing: Active");
    assert!(
        e.notes.len() == 1 && e.notes[0].contains("Queue: AWS::SQS::Queue is not run here"),
        "{:?}",
        e.notes
    );
    let dir = OF_TEMPLATE.replace("app/template.yaml", "app");
    assert_eq!(fixture.parse(&dir, &Options::default()).expect("fine").variants.len(), 2);
}

#[test]
fn what_cannot_be_taken_from_a_template_is_told() {
    let fixture = Fixture::with_template();
    for (from, to, expect) in [
        ("resource = \"Orders\"\n", "", "say which one: resource = \"…\", one of Orders, Inline"),
        ("\"Orders\"", "\"Order\"", "no function \"Order\"\nhint: it has: Orders, Inline"),
        ("\"Orders\"", "\"Inline\"", "an experiment takes a directory\nhint: put the code"),
        ("app/template.yaml", "f", "there is no template in"),
        ("app/template.yaml", "nothing.yaml", "nothing.yaml: No such file"),
        ("Stage = \"prod\"", "Stag = \"prod\"", "no parameter \"Stag\"\nhint: it has: Stage"),
        ("template = \"app/template.yaml\"\n", "", "resource is of a template; there is none"),
    ] {
        let text = OF_TEMPLATE.replace(from, to);
        assert_ne!(text, OF_TEMPLATE, "{from}");
        let got = fixture.parse(&text, &Options::default()).expect_err(to);
        assert!(got.contains(expect), "{got}\nlacks {expect}");
    }
}

#[test]
fn an_image_brings_its_own_runtime() {
    let fixture = Fixture::new();
    fs::write(fixture.dir.path().join("image.tar"), "").expect("written");
    let text = TWO.replace("dir = \"f\"", "image = \"image.tar\"\ncommand = [\"app.handler\"]");
    let e = fixture.parse(&text, &Options::default()).expect("fine");
    let image = e.variants[0].function.image.as_ref().expect("an image");
    assert!(image.archive.ends_with("image.tar"));
    assert_eq!(image.command.as_deref(), Some(&["app.handler".to_owned()][..]));
    for (from, to, expect) in [
        ("image.tar", "no.tar", "no.tar: No such file"),
        ("image.tar", "f", "is not a file\nhint: `docker save"),
        ("image =", "handler = \"a.b\"\nimage =", "image and handler are both given"),
        ("image = \"image.tar\"", "dir = \"f\"", "are of an image; there is none"),
    ] {
        let got = fixture.parse(&text.replace(from, to), &Options::default()).expect_err(to);
        assert!(got.contains(expect), "{got}\nlacks {expect}");
    }
}

#[test]
fn dependencies_that_are_not_installed_are_named() {
    let fixture = Fixture::new();
    let package = fixture.dir.path().join("f/package.json");
    fs::write(package, r#"{"dependencies": {"aws-sdk": "2"}}"#).expect("written");
    let got = fixture.parse(TWO, &Options::default()).expect_err("nothing installed");
    assert!(got.contains("none are installed") && got.contains("make functions"), "{got}");
}

proptest! {
    #[test]
    fn nothing_makes_the_parser_panic(text in "\\PC{0,200}") {
        let _ = Experiment::parse(&text, "x.toml", Path::new("/nonexistent"), &Options::default());
    }

    /// Cuts, doublings and replacements of a file that is almost right reach deeper than noise does.
    #[test]
    fn no_mutation_makes_the_parser_panic(at in 0..TWO.len(), to in 0..TWO.len(), with in "[a-z0-9\\[\\]{}=\"'.\n -]{0,12}") {
        let (from, to) = (at.min(to), at.max(to));
        let text = format!("{}{with}{}", &TWO[..from], &TWO[to..]);
        if let Err(bad) = Experiment::parse(&text, "x.toml", Path::new("/nonexistent"), &Options::default()) {
            prop_assert!(!bad.to_string().is_empty());
        }
    }
}
