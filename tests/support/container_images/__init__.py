"""The images of deploy/image, built by buildah on a Debian base and run by bubblewrap."""

from container_images.image_store import ImageStore
from container_images.private_network import PrivateNetwork
from container_images.sandbox import Image, Sandbox, stop

__all__ = ["Image", "ImageStore", "PrivateNetwork", "Sandbox", "stop"]
