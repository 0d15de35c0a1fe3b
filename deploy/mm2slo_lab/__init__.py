"""The lab: Kafka clusters and MirrorMaker 2 as processes on one machine, without containers.

>>> with Lab.start(LabTopology()) as lab:
...     lab.cluster("us").admin.create_topic("orders", 4)
"""
