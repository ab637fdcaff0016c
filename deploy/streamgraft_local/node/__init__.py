"""The process node: plays the kubelet for laptops and tests.

It registers a Node, watches the pods that the scheduler binds to it, and runs their containers as
local processes, each pod with a loopback address of its own. docs/develop/process-node.md says what
it emulates and what it can't. It can't mount: paths below a volume's mountPath are rewritten in
environment variables, commands and arguments (`expansion.rewrite`).

    node.ProcessNode      one worker per pod; adoption, orphans, shutdown
      pod.PodWorker       files, then init containers, then containers; status; deletion
        container.Container   runs, restarts, termination; health.Health probes one run
          process.Process     a process, by pidfd
    pure: addresses, admission, environment, expansion, probes, quantities, restarts, status
"""
