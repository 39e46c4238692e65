// SDK v2 for Go against Secrets Manager and Parameter Store. Only the dialer differs from a user's: it connects to the region under test
// whatever the host name says, as DNS does in an env.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	smtypes "github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"
)

func check(fine bool, what string, values ...any) {
	if !fine {
		fmt.Fprintln(os.Stderr, append([]any{what}, values...)...)
		os.Exit(1)
	}
}

func main() {
	ctx := context.Background()
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, os.Getenv("REGION_ADDRESS"))
	}
	client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.DialContext = dial })
	config := aws.Config{Region: "us-east-1", HTTPClient: client, Credentials: credentials.NewStaticCredentialsProvider("a", "b", "c")}

	secrets := secretsmanager.NewFromConfig(config)
	_, err := secrets.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: aws.String("none")})
	var missing *smtypes.ResourceNotFoundException
	check(errors.As(err, &missing), "not found", err)
	check(missing.ErrorMessage() == "Secrets Manager can't find the specified secret.", missing.ErrorMessage())
	_, err = secrets.CreateSecret(ctx, &secretsmanager.CreateSecretInput{Name: aws.String("go"), SecretString: aws.String("one")})
	check(err == nil, "create", err)
	_, err = secrets.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{SecretId: aws.String("go"), SecretBinary: []byte{0, 255}})
	check(err == nil, "put", err)
	got, err := secrets.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: aws.String("go")})
	check(err == nil && len(got.SecretBinary) == 2 && !got.CreatedDate.IsZero(), "get", err)
	listed, err := secrets.ListSecrets(ctx, &secretsmanager.ListSecretsInput{})
	check(err == nil && len(listed.SecretList) > 0, "list", err)
	_, err = secrets.DeleteSecret(ctx, &secretsmanager.DeleteSecretInput{SecretId: aws.String("go"), ForceDeleteWithoutRecovery: aws.Bool(true)})
	check(err == nil, "delete", err)

	parameters := ssm.NewFromConfig(config)
	_, err = parameters.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String("/none")})
	var none *ssmtypes.ParameterNotFound
	check(errors.As(err, &none), "not found", err)
	_, err = parameters.PutParameter(ctx, &ssm.PutParameterInput{Name: aws.String("/go/p"), Value: aws.String("v"), Type: ssmtypes.ParameterTypeSecureString})
	check(err == nil, "put", err)
	shown, err := parameters.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String("/go/p"), WithDecryption: aws.Bool(true)})
	check(err == nil && *shown.Parameter.Value == "v", "get", err)
	fmt.Println("all fine")
}
