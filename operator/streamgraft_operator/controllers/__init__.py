"""Controllers and the drivers of conductors: all of one shape (`runtime.Controller`).

`job`, `processing_element`, `pod` and `region` control one kind each; `job_conductor` and
`pod_conductor` show the pure conductors what is there and carry out what they decide.
"""
