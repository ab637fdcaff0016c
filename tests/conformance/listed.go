package main

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// listed returns the versions that the API server has to list, the preferred one first.
func listed(withExternal bool) []string {
	versions := []string{}
	for _, version := range customVersions {
		versions = append(versions, version.String())
	}
	if withExternal {
		versions = append(versions, "external.metrics.k8s.io/v1beta1")
	}
	return versions
}

// untilListed returns once discovery and both OpenAPI documents have all versions, and after the time at the latest:
// what is missing then, the checks tell.
func untilListed(config *rest.Config, versions []string, most time.Duration) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(most); time.Now().Before(deadline); time.Sleep(500 * time.Millisecond) {
		groups, err := client.ServerGroups()
		if err == nil && hasVersions(groups, versions) && inOpenAPI3(client, versions) == nil && inOpenAPI2(client, versions[0]) == nil {
			break
		}
	}
	return nil
}

func hasVersions(groups *metav1.APIGroupList, versions []string) bool {
	found := map[string]bool{}
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			found[version.GroupVersion] = true
		}
	}
	for _, version := range versions {
		if !found[version] {
			return false
		}
	}
	return true
}

func checkOpenAPI(suite *suite, client *discovery.DiscoveryClient, versions []string) {
	suite.check("OpenAPI v3", func() error { return inOpenAPI3(client, versions) })
	suite.check("OpenAPI v2", func() error { return inOpenAPI2(client, versions[0]) })
}

func inOpenAPI3(client *discovery.DiscoveryClient, versions []string) error {
	paths, err := client.OpenAPIV3().Paths()
	if err != nil {
		return err
	}
	for _, version := range versions {
		found, there := paths["apis/"+version]
		if !there {
			return fmt.Errorf("nothing about %s", version)
		}
		if _, err := found.Schema("application/json"); err != nil {
			return err
		}
	}
	return nil
}

func inOpenAPI2(client *discovery.DiscoveryClient, version string) error {
	document, err := client.OpenAPISchema()
	if err != nil {
		return err
	}
	for _, item := range document.GetPaths().GetPath() {
		if strings.HasPrefix(item.GetName(), "/apis/"+version+"/") {
			return nil
		}
	}
	return fmt.Errorf("nothing about %s", version)
}
