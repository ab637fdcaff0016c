package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	custom "k8s.io/metrics/pkg/client/custom_metrics"
)

const nobody = "conformance-there-is-no-such-thing"

// metric of one object; an empty namespace means outside of namespaces.
type metric struct{ namespace, resource, name, metric string }

func (m metric) String() string {
	return strings.TrimPrefix(strings.Join([]string{m.namespace, m.resource, m.name, m.metric}, "/"), "/")
}

// path is what is asked for in the API.
func (m metric) path(version schema.GroupVersion) string {
	base := "/apis/" + version.String() + "/"
	if m.resource == "namespaces" {
		return base + "namespaces/" + m.name + "/metrics/" + m.metric
	}
	if m.namespace != "" {
		base += "namespaces/" + m.namespace + "/"
	}
	return base + m.resource + "/" + m.name + "/" + m.metric
}

func (m metric) of(client custom.CustomMetricsClient) custom.MetricsInterface {
	if m.namespace == "" {
		return client.RootScopedMetrics()
	}
	return client.NamespacedMetrics(m.namespace)
}

func (m metric) kind(clients *clients) (schema.GroupKind, error) {
	kind, err := clients.mapper.KindFor(schema.ParseGroupResource(m.resource).WithVersion(""))
	return kind.GroupKind(), err
}

// labels are those of the object itself.
func (m metric) labels(clients *clients) (labels.Set, error) {
	resource, err := clients.mapper.ResourceFor(schema.ParseGroupResource(m.resource).WithVersion(""))
	if err != nil {
		return nil, err
	}
	object, err := clients.metadata.Resource(resource).Namespace(m.namespace).Get(context.Background(), m.name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return object.Labels, nil
}

func checkDiscovery(suite *suite, clients *clients, version string) {
	suite.check("discovery of "+version, func() error {
		found, err := clients.discovery.ServerResourcesForGroupVersion(version)
		if err != nil {
			return err
		}
		for _, entry := range found.APIResources {
			if !strings.Contains(entry.Name, "/") || entry.Kind != "MetricValueList" || len(entry.Verbs) == 0 {
				return fmt.Errorf("%+v is no entry such as pods/metric of kind MetricValueList", entry)
			}
		}
		return nil
	})
}

func checkObject(suite *suite, clients *clients, wanted metric) {
	kind, err := wanted.kind(clients)
	if err != nil {
		suite.check("kind of "+wanted.resource, func() error { return err })
		return
	}
	everyClient := map[string]custom.CustomMetricsClient{"the preferred version": clients.preferred}
	for version, client := range clients.versioned {
		everyClient[version.Version] = client
	}
	for name, client := range everyClient {
		suite.check(fmt.Sprintf("%s by name in %s", wanted, name), func() error {
			value, err := wanted.of(client).GetForObject(kind, wanted.name, wanted.metric, labels.Everything())
			if err != nil {
				return err
			}
			return wanted.sane(kind, value)
		})
	}
	checkRaw(suite, clients, wanted)
	checkErrors(suite, clients, wanted, kind)
	if wanted.resource != "namespaces" {
		checkList(suite, clients, wanted, kind)
	}
}

func (m metric) sane(kind schema.GroupKind, value *v1beta2.MetricValue) error {
	object := value.DescribedObject
	if object.Name != m.name || object.Namespace != m.namespace || object.Kind != kind.Kind {
		return fmt.Errorf("it describes %+v", object)
	}
	if value.Metric.Name != m.metric {
		return fmt.Errorf("it is the metric %q", value.Metric.Name)
	}
	if age := time.Since(value.Timestamp.Time); value.Timestamp.IsZero() || age < -5*time.Second || age > time.Hour {
		return fmt.Errorf("its timestamp is %s", value.Timestamp)
	}
	if value.WindowSeconds != nil && *value.WindowSeconds <= 0 {
		return fmt.Errorf("its window is %d s", *value.WindowSeconds)
	}
	return nil
}

func checkRaw(suite *suite, clients *clients, wanted metric) {
	for _, version := range customVersions {
		suite.check("GET "+wanted.path(version), func() error {
			body, err := clients.discovery.RESTClient().Get().AbsPath(wanted.path(version)).DoRaw(context.Background())
			if err != nil {
				return err
			}
			return oneItem(body, version)
		})
	}
}

func checkErrors(suite *suite, clients *clients, wanted metric, kind schema.GroupKind) {
	client := wanted.of(clients.preferred)
	suite.check(fmt.Sprintf("%s: an unknown metric is not found", wanted), func() error {
		_, err := client.GetForObject(kind, wanted.name, nobody, labels.Everything())
		return notFound(err)
	})
	suite.check(fmt.Sprintf("%s: an unknown object is not found", wanted), func() error {
		_, err := client.GetForObject(kind, nobody, wanted.metric, labels.Everything())
		return notFound(err)
	})
	suite.check(fmt.Sprintf("%s: a malformed selector is a bad request", wanted), func() error {
		request := clients.discovery.RESTClient().Get().AbsPath(wanted.path(customVersions[0]))
		_, err := request.Param("metricLabelSelector", "a b c").DoRaw(context.Background())
		if !apierrors.IsBadRequest(err) {
			return fmt.Errorf("%v", err)
		}
		return nil
	})
	suite.check(fmt.Sprintf("%s: nothing can be written", wanted), func() error {
		request := clients.discovery.RESTClient().Post().AbsPath(wanted.path(customVersions[0]))
		if _, err := request.Body([]byte("{}")).DoRaw(context.Background()); !apierrors.IsMethodNotSupported(err) {
			return fmt.Errorf("%v", err)
		}
		return nil
	})
}

func notFound(err error) error {
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("the answer is %v", err)
	}
	return nil
}

func checkList(suite *suite, clients *clients, wanted metric, kind schema.GroupKind) {
	client := wanted.of(clients.preferred)
	suite.check(fmt.Sprintf("%s: a list without a selector has it", wanted), func() error {
		list, err := client.GetForObjects(kind, labels.Everything(), wanted.metric, labels.Everything())
		if err != nil {
			return err
		}
		for _, value := range list.Items {
			if value.DescribedObject.Name == wanted.name {
				return wanted.sane(kind, &value)
			}
		}
		return fmt.Errorf("not among %d items", len(list.Items))
	})
	suite.check(fmt.Sprintf("%s: a selector of its own labels finds it", wanted), func() error {
		own, err := wanted.labels(clients)
		if err != nil {
			return err
		}
		list, err := client.GetForObjects(kind, own.AsSelector(), wanted.metric, labels.Everything())
		if err != nil {
			return err
		}
		for _, value := range list.Items {
			if value.DescribedObject.Name == wanted.name {
				return nil
			}
		}
		return fmt.Errorf("not among the %d items with %s", len(list.Items), own)
	})
	suite.check(fmt.Sprintf("%s: a selector that nothing meets finds nothing", wanted), func() error {
		selector := labels.SelectorFromSet(labels.Set{nobody: "x"})
		list, err := client.GetForObjects(kind, selector, wanted.metric, labels.Everything())
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil && len(list.Items) > 0 {
			return fmt.Errorf("%d items", len(list.Items))
		}
		return err
	})
}

func checkExternal(suite *suite, clients *clients, namespace, name string) {
	client := clients.external.NamespacedMetrics(namespace)
	suite.check(fmt.Sprintf("external %s/%s", namespace, name), func() error {
		list, err := client.List(name, labels.Everything())
		if err != nil {
			return err
		}
		for _, value := range list.Items {
			if value.MetricName != name || value.Timestamp.IsZero() {
				return fmt.Errorf("%+v", value)
			}
		}
		if len(list.Items) == 0 {
			return fmt.Errorf("it has no values")
		}
		return nil
	})
	suite.check(fmt.Sprintf("external %s/%s: a selector of a value's own labels finds it", namespace, name), func() error {
		all, err := client.List(name, labels.Everything())
		if err != nil || len(all.Items) == 0 {
			return fmt.Errorf("it has no values: %v", err)
		}
		own := labels.Set(all.Items[0].MetricLabels)
		list, err := client.List(name, own.AsSelector())
		if err != nil {
			return err
		}
		for _, value := range list.Items {
			if !own.AsSelector().Matches(labels.Set(value.MetricLabels)) {
				return fmt.Errorf("%v has not the labels %s", value.MetricLabels, own)
			}
		}
		if len(list.Items) == 0 {
			return fmt.Errorf("nothing has the labels %s", own)
		}
		return nil
	})
	suite.check(fmt.Sprintf("external %s/%s: a selector that nothing meets finds nothing", namespace, name), func() error {
		list, err := client.List(name, labels.SelectorFromSet(labels.Set{nobody: "x"}))
		if err == nil && len(list.Items) > 0 {
			return fmt.Errorf("%d items", len(list.Items))
		}
		return nil
	})
	suite.check("an unknown external metric has no value", func() error {
		list, err := client.List(nobody, labels.Everything())
		if err == nil && len(list.Items) > 0 {
			return fmt.Errorf("%d items", len(list.Items))
		}
		return nil
	})
}

// checkForgery asks without a certificate as if it were the front proxy.
func checkForgery(suite *suite, address string) {
	// What is checked is whom the server believes, so whose certificate it has does not matter.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
	suite.check("forged X-Remote-User is refused", func() error {
		request, err := http.NewRequest(http.MethodGet, address+"/apis/"+customVersions[0].String(), nil)
		if err != nil {
			return err
		}
		request.Header.Set("X-Remote-User", "system:admin")
		request.Header.Set("X-Remote-Group", "system:masters")
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusUnauthorized && response.StatusCode != http.StatusForbidden {
			return fmt.Errorf("it answers %s", response.Status)
		}
		return nil
	})
}
