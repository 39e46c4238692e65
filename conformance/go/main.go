// The echo that every client here serves, on AWS's runtime client for Go.
package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

type event struct {
	Op    string `json:"op"`
	Value any    `json:"value"`
}

// breaks is a stream that fails after its first bytes.
type breaks struct{ read bool }

func (b *breaks) Read(p []byte) (int, error) {
	if b.read {
		return 0, errors.New("half-way")
	}
	b.read = true
	return copy(p, "first "), nil
}

func handler(ctx context.Context, e event) (any, error) {
	switch e.Op {
	case "fail":
		return nil, errors.New("boom")
	case "context":
		lc, _ := lambdacontext.FromContext(ctx)
		return map[string]string{"id": lc.AwsRequestID, "arn": lc.InvokedFunctionArn}, nil
	case "twice":
		return strings.Repeat(e.Value.(string), 2) + strings.Repeat("x", 100), nil
	case "stream":
		return io.Reader(&breaks{}), nil
	}
	return e.Value, nil
}

func main() { lambda.Start(handler) }
