// SDK v2 for Go: one function's life against `danki up`, whose address and keys are in the environment.
package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

const patience = time.Minute

var (
	name = aws.String("go")
	live = aws.String("live")
)

func check(fine bool, what string, values ...any) {
	if !fine {
		fmt.Fprintln(os.Stderr, append([]any{what}, values...)...)
		os.Exit(1)
	}
}

func must[T any](answer T, err error) T {
	check(err == nil, "refused:", err)
	return answer
}

// refused holds that a call fails with this class of error.
func refused[E error, T any](_ T, err error) E {
	var want E
	check(errors.As(err, &want), fmt.Sprintf("not a %T:", want), err)
	return want
}

func until(what string, holds func() bool) {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if holds() {
			return
		}
	}
	check(false, "not within a minute:", what)
}

// config leaves the SDK's retries on: it closes a request's body as soon as the answer's head is there, and where its own writer is
// late, that breaks the connection.
func config() aws.Config {
	keys := credentials.NewStaticCredentialsProvider(os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), "")
	return aws.Config{
		Region: os.Getenv("AWS_DEFAULT_REGION"), BaseEndpoint: aws.String(os.Getenv("AWS_ENDPOINT_URL")), Credentials: keys,
	}
}

func main() {
	ctx := context.Background()
	client := lambda.NewFromConfig(config())
	me := must(sts.NewFromConfig(config()).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{}))
	echo := lambda.CreateFunctionInput{
		FunctionName: name, Runtime: types.RuntimePython311, Handler: aws.String("app.handler"),
		Role: aws.String("arn:aws:iam::" + *me.Account + ":role/go"), Timeout: aws.Int32(30), MemorySize: aws.Int32(512),
		Code: &types.FunctionCode{ZipFile: must(os.ReadFile(os.Getenv("ECHO_ZIP")))},
	}
	create(ctx, client, echo)
	invoke(ctx, client)
	version := provision(ctx, client)
	retried := asynchronous(ctx, client)
	stream(ctx, client, echo)
	refusals(ctx, client, echo)
	must(client.DeleteProvisionedConcurrencyConfig(ctx, &lambda.DeleteProvisionedConcurrencyConfigInput{FunctionName: name, Qualifier: live}))
	until("two attempts", retried)
	throttle(ctx, client)
	// An alias points at the version.
	refused[*types.ResourceConflictException](client.DeleteFunction(ctx, &lambda.DeleteFunctionInput{FunctionName: name, Qualifier: version}))
	must(client.DeleteFunction(ctx, &lambda.DeleteFunctionInput{FunctionName: name}))
	refused[*types.ResourceNotFoundException](client.GetFunction(ctx, &lambda.GetFunctionInput{FunctionName: name}))
	fmt.Println("all fine")
}

func create(ctx context.Context, client *lambda.Client, input lambda.CreateFunctionInput) {
	made := must(client.CreateFunction(ctx, &input))
	check(made.State == types.StatePending, "state", made.State)
	refused[*types.ResourceConflictException](client.CreateFunction(ctx, &input))
	active := lambda.NewFunctionActiveV2Waiter(client, func(o *lambda.FunctionActiveV2WaiterOptions) { o.MinDelay = 100 * time.Millisecond })
	check(active.Wait(ctx, &lambda.GetFunctionInput{FunctionName: input.FunctionName}, patience) == nil, "not active")
}

func invoke(ctx context.Context, client *lambda.Client) {
	tail := must(client.Invoke(ctx, &lambda.InvokeInput{FunctionName: name, Payload: []byte(`{"n":1}`), LogType: types.LogTypeTail}))
	var event map[string]int
	check(json.Unmarshal(tail.Payload, &event) == nil && event["n"] == 1, "payload", string(tail.Payload))
	check(tail.StatusCode == 200 && *tail.ExecutedVersion == "$LATEST" && tail.FunctionError == nil, "answer", tail)
	log := must(base64.StdEncoding.DecodeString(*tail.LogResult))
	check(strings.Contains(string(log), "REPORT RequestId: "), "log", string(log))
	failed := must(client.Invoke(ctx, &lambda.InvokeInput{FunctionName: name, Payload: []byte(`{"op":"fail"}`)}))
	check(*failed.FunctionError == "Unhandled" && strings.Contains(string(failed.Payload), "boom"), "error", string(failed.Payload))
}

func provision(ctx context.Context, client *lambda.Client) *string {
	version := must(client.PublishVersion(ctx, &lambda.PublishVersionInput{FunctionName: name})).Version
	active := lambda.NewPublishedVersionActiveWaiter(client, func(o *lambda.PublishedVersionActiveWaiterOptions) { o.MinDelay = 100 * time.Millisecond })
	check(active.Wait(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: name, Qualifier: version}, patience) == nil, "not active")
	must(client.CreateAlias(ctx, &lambda.CreateAliasInput{FunctionName: name, Name: live, FunctionVersion: version}))
	get := &lambda.GetProvisionedConcurrencyConfigInput{FunctionName: name, Qualifier: live}
	refused[*types.ProvisionedConcurrencyConfigNotFoundException](client.GetProvisionedConcurrencyConfig(ctx, get))
	must(client.PutProvisionedConcurrencyConfig(ctx, &lambda.PutProvisionedConcurrencyConfigInput{
		FunctionName: name, Qualifier: live, ProvisionedConcurrentExecutions: aws.Int32(1)}))
	until("READY", func() bool {
		return must(client.GetProvisionedConcurrencyConfig(ctx, get)).Status == types.ProvisionedConcurrencyStatusEnumReady
	})
	kind := []byte(`{"op":"env","names":["AWS_LAMBDA_INITIALIZATION_TYPE"]}`)
	warm := must(client.Invoke(ctx, &lambda.InvokeInput{FunctionName: name, Qualifier: live, Payload: kind}))
	check(*warm.ExecutedVersion == *version && strings.Contains(string(warm.Payload), "provisioned-concurrency"), "warm", string(warm.Payload))
	return version
}

// asynchronous sends an event that fails; the result says whether it was tried twice under one id, by the log.
func asynchronous(ctx context.Context, client *lambda.Client) func() bool {
	must(client.PutFunctionEventInvokeConfig(ctx, &lambda.PutFunctionEventInvokeConfigInput{FunctionName: name, MaximumRetryAttempts: aws.Int32(1)}))
	context64 := base64.StdEncoding.EncodeToString([]byte(`{"custom":{"from":"go"}}`))
	sent := must(client.Invoke(ctx, &lambda.InvokeInput{
		FunctionName: name, Payload: []byte(`{"op":"fail"}`), InvocationType: types.InvocationTypeEvent, ClientContext: aws.String(context64)}))
	check(sent.StatusCode == 202, "status", sent.StatusCode)
	id, known := middleware.GetRequestIDMetadata(sent.ResultMetadata)
	check(known, "no request id")
	logs := cloudwatchlogs.NewFromConfig(config())
	return func() bool {
		found := must(logs.FilterLogEvents(ctx, &cloudwatchlogs.FilterLogEventsInput{
			LogGroupName: aws.String("/aws/lambda/go"), FilterPattern: aws.String("\"START RequestId: " + id + "\"")}))
		return len(found.Events) == 2
	}
}

func stream(ctx context.Context, client *lambda.Client, input lambda.CreateFunctionInput) {
	input.FunctionName, input.Runtime, input.Handler = aws.String("go-stream"), types.RuntimeNodejs20x, aws.String("index.handler")
	input.Code = &types.FunctionCode{ZipFile: must(os.ReadFile(os.Getenv("STREAM_ZIP")))}
	create(ctx, client, input)
	answer := must(client.InvokeWithResponseStream(ctx, &lambda.InvokeWithResponseStreamInput{FunctionName: input.FunctionName}))
	text, complete := "", false
	for event := range answer.GetStream().Events() {
		switch event := event.(type) {
		case *types.InvokeWithResponseStreamResponseEventMemberPayloadChunk:
			text += string(event.Value.Payload)
		case *types.InvokeWithResponseStreamResponseEventMemberInvokeComplete:
			complete = event.Value.ErrorCode == nil
		}
	}
	check(text == "one\ntwo\n" && complete && answer.GetStream().Err() == nil, "stream", text)
}

func refusals(ctx context.Context, client *lambda.Client, input lambda.CreateFunctionInput) {
	call := func(payload string) (*lambda.InvokeOutput, error) {
		return client.Invoke(ctx, &lambda.InvokeInput{FunctionName: name, Payload: []byte(payload)})
	}
	missing := refused[*types.ResourceNotFoundException](client.GetFunction(ctx, &lambda.GetFunctionInput{FunctionName: aws.String("nobody")}))
	check(strings.HasPrefix(missing.ErrorMessage(), "Function not found: "), "message", missing.ErrorMessage())
	input.FunctionName, input.Runtime = aws.String("never"), types.RuntimeJava21
	refused[*types.InvalidParameterValueException](client.CreateFunction(ctx, &input))
	refused[*types.InvalidRequestContentException](call("no json"))
	refused[*types.RequestTooLargeException](call(`"` + strings.Repeat("x", 6_291_456) + `"`))
	refused[*types.PreconditionFailedException](client.UpdateFunctionConfiguration(ctx, &lambda.UpdateFunctionConfigurationInput{
		FunctionName: name, Timeout: aws.Int32(5), RevisionId: aws.String("stale")}))
}

func throttle(ctx context.Context, client *lambda.Client) {
	must(client.PutFunctionConcurrency(ctx, &lambda.PutFunctionConcurrencyInput{FunctionName: name, ReservedConcurrentExecutions: aws.Int32(0)}))
	throttled := refused[*types.TooManyRequestsException](client.Invoke(ctx, &lambda.InvokeInput{FunctionName: name}))
	check(throttled.Reason == types.ThrottleReasonReservedFunctionConcurrentInvocationLimitExceeded, "reason", throttled.Reason)
}
