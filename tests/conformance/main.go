// Command conformance checks any server of custom.metrics.k8s.io and external.metrics.k8s.io with the clients that
// Kubernetes itself uses: discovery, the HorizontalPodAutoscaler's two metrics clients, raw paths, and kubectl itself if
// there is one on the PATH.
//
//	conformance -kubeconfig FILE -object NAMESPACE/RESOURCE.GROUP/NAME/METRIC … [-root RESOURCE/NAME/METRIC …]
//	            [-external NAMESPACE/METRIC …] [-direct https://ADDRESS] [-wait DURATION]
//
// An API server hears of an aggregated one up to a minute after it came, or came back: -wait bounds how long that may
// take. Every named metric must have a value. Without a namespace: objects outside of namespaces, and namespaces
// themselves (namespaces/NAME/METRIC). It prints a line for each check and ends with 1 if one failed.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
)

type repeated [][]string

func (values *repeated) String() string { return fmt.Sprint([][]string(*values)) }

func (values *repeated) Set(text string) error {
	*values = append(*values, strings.Split(text, "/"))
	return nil
}

func (values *repeated) need(parts int, usage string) {
	for _, value := range *values {
		if len(value) != parts {
			fail(fmt.Errorf("%s has not the form %s", strings.Join(value, "/"), usage))
		}
	}
}

func main() {
	var objects, roots, externals repeated
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "of the cluster whose API server asks the metrics server")
	wait := flag.Duration("wait", 0, "for the API server to list the metrics server's APIs")
	direct := flag.String("direct", "", "URL of the metrics server itself: forged headers must be refused there")
	flag.Var(&objects, "object", "NAMESPACE/RESOURCE.GROUP/NAME/METRIC")
	flag.Var(&roots, "root", "RESOURCE.GROUP/NAME/METRIC")
	flag.Var(&externals, "external", "NAMESPACE/METRIC")
	flag.Parse()
	objects.need(4, "NAMESPACE/RESOURCE.GROUP/NAME/METRIC")
	roots.need(3, "RESOURCE.GROUP/NAME/METRIC")
	externals.need(2, "NAMESPACE/METRIC")

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	fail(err)
	fail(untilListed(config, listed(len(externals) > 0), *wait))
	clients, err := newClients(config)
	fail(err)
	suite := &suite{}
	for _, version := range customVersions {
		checkDiscovery(suite, clients, version.String())
	}
	var wanted []metric
	for _, part := range objects {
		wanted = append(wanted, metric{part[0], part[1], part[2], part[3]})
	}
	for _, part := range roots {
		wanted = append(wanted, metric{"", part[0], part[1], part[2]})
	}
	for _, one := range wanted {
		checkObject(suite, clients, one)
	}
	if binary, err := exec.LookPath("kubectl"); err == nil {
		checkKubectl(suite, kubectl{binary, *kubeconfig}, wanted)
	} else {
		fmt.Println("there is no kubectl on the PATH: left out")
	}
	for _, part := range externals {
		checkExternal(suite, clients, part[0], part[1])
	}
	checkOpenAPI(suite, clients.discovery, listed(len(externals) > 0))
	if *direct != "" {
		checkForgery(suite, *direct)
	}
	if suite.failed > 0 {
		fmt.Printf("%d of %d checks failed\n", suite.failed, suite.run)
		os.Exit(1)
	}
	fmt.Printf("all %d checks passed\n", suite.run)
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

type suite struct{ run, failed int }

func (suite *suite) check(name string, check func() error) {
	suite.run++
	if err := check(); err != nil {
		suite.failed++
		fmt.Printf("FAIL %s: %v\n", name, err)
		return
	}
	fmt.Printf("ok   %s\n", name)
}
