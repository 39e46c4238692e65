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
	otherSecrets(ctx, secrets, got.VersionId)
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
	otherParameters(ctx, parameters)
	fmt.Println("all fine")
}

// otherSecrets asks for the operations of Secrets Manager that main leaves out.
func otherSecrets(ctx context.Context, secrets *secretsmanager.Client, version *string) {
	id := aws.String("go")
	_, err := secrets.UpdateSecret(ctx, &secretsmanager.UpdateSecretInput{SecretId: id, Description: aws.String("words"), SecretString: aws.String("three")})
	check(err == nil, "update", err)
	_, err = secrets.UpdateSecretVersionStage(ctx, &secretsmanager.UpdateSecretVersionStageInput{SecretId: id, VersionStage: aws.String("mine"), MoveToVersionId: version})
	check(err == nil, "move a stage", err)
	_, err = secrets.TagResource(ctx, &secretsmanager.TagResourceInput{SecretId: id, Tags: []smtypes.Tag{{Key: aws.String("k"), Value: aws.String("v")}}})
	check(err == nil, "tag", err)
	described, err := secrets.DescribeSecret(ctx, &secretsmanager.DescribeSecretInput{SecretId: id})
	check(err == nil && *described.Description == "words" && len(described.Tags) == 1, "describe", err)
	check(len(described.VersionIdsToStages[*version]) == 2, "stages", described.VersionIdsToStages)
	_, err = secrets.UntagResource(ctx, &secretsmanager.UntagResourceInput{SecretId: id, TagKeys: []string{"k"}})
	check(err == nil, "untag", err)
	versions, err := secrets.ListSecretVersionIds(ctx, &secretsmanager.ListSecretVersionIdsInput{SecretId: id, IncludeDeprecated: aws.Bool(true)})
	check(err == nil && len(versions.Versions) == 3, "versions", err)
	batch, err := secrets.BatchGetSecretValue(ctx, &secretsmanager.BatchGetSecretValueInput{SecretIdList: []string{"go", "none"}})
	check(err == nil && *batch.SecretValues[0].SecretString == "three" && *batch.Errors[0].ErrorCode == "ResourceNotFoundException", "batch", err)
	password, err := secrets.GetRandomPassword(ctx, &secretsmanager.GetRandomPasswordInput{PasswordLength: aws.Int64(40)})
	check(err == nil && len(*password.RandomPassword) == 40, "password", err)
	_, err = secrets.RotateSecret(ctx, &secretsmanager.RotateSecretInput{SecretId: id})
	var invalid *smtypes.InvalidRequestException
	check(errors.As(err, &invalid), "rotation has no function", err)
	_, err = secrets.DeleteSecret(ctx, &secretsmanager.DeleteSecretInput{SecretId: id})
	check(err == nil, "delete for a while", err)
	_, err = secrets.RestoreSecret(ctx, &secretsmanager.RestoreSecretInput{SecretId: id})
	check(err == nil, "restore", err)
}

// otherParameters asks for the operations of Parameter Store that main leaves out.
func otherParameters(ctx context.Context, parameters *ssm.Client) {
	name := aws.String("/go/p")
	_, err := parameters.PutParameter(ctx, &ssm.PutParameterInput{Name: name, Value: aws.String("w"), Overwrite: aws.Bool(true)})
	check(err == nil, "overwrite", err)
	_, err = parameters.LabelParameterVersion(ctx, &ssm.LabelParameterVersionInput{Name: name, ParameterVersion: aws.Int64(1), Labels: []string{"old"}})
	check(err == nil, "label", err)
	several, err := parameters.GetParameters(ctx, &ssm.GetParametersInput{Names: []string{"/go/p:old", "/none"}, WithDecryption: aws.Bool(true)})
	check(err == nil && *several.Parameters[0].Value == "v" && several.InvalidParameters[0] == "/none", "several", err)
	unlabelled, err := parameters.UnlabelParameterVersion(ctx, &ssm.UnlabelParameterVersionInput{Name: name, ParameterVersion: aws.Int64(1), Labels: []string{"old"}})
	check(err == nil && len(unlabelled.RemovedLabels) == 1, "unlabel", err)
	history, err := parameters.GetParameterHistory(ctx, &ssm.GetParameterHistoryInput{Name: name})
	check(err == nil && len(history.Parameters) == 2 && !history.Parameters[0].LastModifiedDate.IsZero(), "history", err)
	below, err := parameters.GetParametersByPath(ctx, &ssm.GetParametersByPathInput{Path: aws.String("/go")})
	check(err == nil && len(below.Parameters) == 1, "by path", err)
	described, err := parameters.DescribeParameters(ctx, &ssm.DescribeParametersInput{})
	check(err == nil && len(described.Parameters) > 0, "describe", err)
	_, err = parameters.AddTagsToResource(ctx, &ssm.AddTagsToResourceInput{ResourceType: ssmtypes.ResourceTypeForTaggingParameter, ResourceId: name, Tags: []ssmtypes.Tag{{Key: aws.String("k"), Value: aws.String("v")}}})
	check(err == nil, "tag", err)
	tags, err := parameters.ListTagsForResource(ctx, &ssm.ListTagsForResourceInput{ResourceType: ssmtypes.ResourceTypeForTaggingParameter, ResourceId: name})
	check(err == nil && len(tags.TagList) == 1, "tags", err)
	_, err = parameters.RemoveTagsFromResource(ctx, &ssm.RemoveTagsFromResourceInput{ResourceType: ssmtypes.ResourceTypeForTaggingParameter, ResourceId: name, TagKeys: []string{"k"}})
	check(err == nil, "untag", err)
	_, err = parameters.PutParameter(ctx, &ssm.PutParameterInput{Name: aws.String("/go/q"), Value: aws.String("v"), Type: ssmtypes.ParameterTypeString})
	check(err == nil, "put another", err)
	deleted, err := parameters.DeleteParameters(ctx, &ssm.DeleteParametersInput{Names: []string{"/go/q", "/none"}})
	check(err == nil && len(deleted.DeletedParameters) == 1 && len(deleted.InvalidParameters) == 1, "delete several", err)
	_, err = parameters.DeleteParameter(ctx, &ssm.DeleteParameterInput{Name: name})
	check(err == nil, "delete", err)
}
