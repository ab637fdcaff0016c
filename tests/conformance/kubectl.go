package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kubectl is the user's own, and asks one cluster.
type kubectl struct{ binary, kubeconfig string }

func (k kubectl) run(arguments ...string) (string, error) {
	command := exec.Command(k.binary, append([]string{"--kubeconfig", k.kubeconfig}, arguments...)...)
	output, err := command.Output()
	if failure := (*exec.ExitError)(nil); errors.As(err, &failure) {
		return "", fmt.Errorf("%w: %s", err, failure.Stderr)
	}
	return string(output), err
}

func checkKubectl(suite *suite, k kubectl, wanted []metric) {
	suite.check("kubectl api-versions", func() error {
		output, err := k.run("api-versions")
		if err != nil {
			return err
		}
		known := strings.Fields(output)
		for _, version := range customVersions {
			if !contains(known, version.String()) {
				return fmt.Errorf("%s is not among %v", version, known)
			}
		}
		return nil
	})
	for _, one := range wanted {
		for _, version := range customVersions {
			checkGetRaw(suite, k, one, version)
		}
	}
}

func checkGetRaw(suite *suite, k kubectl, wanted metric, version schema.GroupVersion) {
	path := wanted.path(version)
	suite.check("kubectl get --raw "+path, func() error {
		output, err := k.run("get", "--raw", path)
		if err != nil {
			return err
		}
		return oneItem([]byte(output), version)
	})
	unknown := strings.TrimSuffix(path, wanted.metric) + nobody
	suite.check("kubectl get --raw "+unknown+" is not found", func() error {
		if _, err := k.run("get", "--raw", unknown); err == nil || !strings.Contains(err.Error(), "(NotFound)") {
			return fmt.Errorf("the answer is %v", err)
		}
		return nil
	})
}

func oneItem(body []byte, version schema.GroupVersion) error {
	var list struct {
		Kind, APIVersion string
		Items            []map[string]any
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return err
	}
	if list.Kind != "MetricValueList" || list.APIVersion != version.String() || len(list.Items) != 1 {
		return fmt.Errorf("%s %s with %d items", list.APIVersion, list.Kind, len(list.Items))
	}
	return nil
}

func contains(texts []string, wanted string) bool {
	for _, text := range texts {
		if text == wanted {
			return true
		}
	}
	return false
}
