package main

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/metrics/pkg/apis/custom_metrics/v1beta1"
	"k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	custom "k8s.io/metrics/pkg/client/custom_metrics"
	external "k8s.io/metrics/pkg/client/external_metrics"
)

var customVersions = []schema.GroupVersion{v1beta2.SchemeGroupVersion, v1beta1.SchemeGroupVersion}

// clients are those of the HorizontalPodAutoscaler controller and of kubectl.
type clients struct {
	discovery *discovery.DiscoveryClient
	metadata  metadata.Interface
	mapper    meta.RESTMapper
	// preferred asks for the version that the server prefers, as the HorizontalPodAutoscaler does.
	preferred custom.CustomMetricsClient
	versioned map[schema.GroupVersion]custom.CustomMetricsClient
	external  external.ExternalMetricsClient
}

func newClients(config *rest.Config) (*clients, error) {
	found, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	resources, err := restmapper.GetAPIGroupResources(found)
	if err != nil {
		return nil, err
	}
	mapper := restmapper.NewDiscoveryRESTMapper(resources)
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	versioned := map[schema.GroupVersion]custom.CustomMetricsClient{}
	for _, version := range customVersions {
		if versioned[version], err = custom.NewForVersionForConfig(config, mapper, version); err != nil {
			return nil, err
		}
	}
	ofExternal, err := external.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &clients{
		discovery: found,
		metadata:  objects,
		mapper:    mapper,
		preferred: custom.NewForConfig(config, mapper, custom.NewAvailableAPIsGetter(found)),
		versioned: versioned,
		external:  ofExternal,
	}, nil
}
