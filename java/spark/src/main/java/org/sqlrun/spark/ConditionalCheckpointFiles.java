package org.sqlrun.spark;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream;
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager;
import org.sqlrun.s3.ConditionalUpload;

/**
 * The files of a stream's checkpoint on S3: each is one PUT that the store refuses if the object exists.
 *
 * <p>Spark itself writes another file, looks whether the name is free, and renames. On S3 that is a copy and a
 * deletion, and a second driver that plans the same batch between the look and the copy is overwritten.
 */
public final class ConditionalCheckpointFiles extends FileSystemBasedCheckpointFileManager {
  /** Spark calls this. */
  public ConditionalCheckpointFiles(Path checkpoint, Configuration configuration) {
    super(checkpoint, configuration);
  }

  /**
   * Returns a stream whose bytes are uploaded when it is closed.
   *
   * <p>Its `close` throws FileAlreadyExistsException if another driver's file is there and `overwrite` is false.
   */
  @Override
  public CancellableFSDataOutputStream createAtomic(Path path, boolean overwrite) {
    String scheme = fs().getUri().getScheme();
    return scheme.startsWith("s3") ? new Upload(path, overwrite) : super.createAtomic(path, overwrite);
  }

  private final class Upload extends CancellableFSDataOutputStream {
    private final Path path;
    private final boolean overwrite;
    private boolean done;

    Upload(Path path, boolean overwrite) {
      super(new ByteArrayOutputStream());
      this.path = path;
      this.overwrite = overwrite;
    }

    @Override
    public void close() throws IOException {
      if (done) {
        return;
      }
      done = true;
      flush();
      byte[] bytes = ((ByteArrayOutputStream) underlyingStream()).toByteArray();
      if (overwrite) {
        ConditionalUpload.replace(fs(), path, bytes);
        return;
      }
      try {
        ConditionalUpload.create(fs(), path, bytes);
      } catch (java.nio.file.FileAlreadyExistsException taken) {
        // Spark takes Hadoop's class for a second driver, and any other for a failed upload.
        FileAlreadyExistsException known = new FileAlreadyExistsException(taken.getMessage());
        known.initCause(taken);
        throw known;
      }
    }

    @Override
    public void cancel() {
      done = true;
    }
  }
}
