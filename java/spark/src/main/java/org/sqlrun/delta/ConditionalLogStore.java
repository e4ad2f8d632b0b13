package org.sqlrun.delta;

import io.delta.storage.HadoopFileSystemLogStore;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.sqlrun.s3.ConditionalUpload;

/**
 * Delta's log on S3: a commit is one PUT that the store refuses if the object exists.
 *
 * <p>So any number of drivers, and of writers other than Spark, may commit to one table.
 */
public class ConditionalLogStore extends HadoopFileSystemLogStore {
  /** Delta calls this. */
  public ConditionalLogStore(Configuration configuration) {
    super(configuration);
  }

  /**
   * Writes a file of the log. A commit names its transaction and its data files by random ids, so equal bytes are the
   * same commit.
   *
   * @throws FileAlreadyExistsException if another writer's file is there, and `overwrite` is false
   */
  @Override
  public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration configuration)
      throws IOException {
    // All of it before the upload begins: an error in the iterator must not leave a part of a commit.
    byte[] bytes = joined(actions);
    FileSystem files = path.getFileSystem(configuration);
    if (overwrite) {
      ConditionalUpload.replace(files, path, bytes);
    } else {
      ConditionalUpload.create(files, path, bytes);
    }
  }

  /** Returns false: an upload is visible as a whole or not at all. */
  @Override
  public Boolean isPartialWriteVisible(Path path, Configuration configuration) {
    return false;
  }

  private static byte[] joined(Iterator<String> actions) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    while (actions.hasNext()) {
      bytes.writeBytes(actions.next().getBytes(StandardCharsets.UTF_8));
      bytes.write('\n');
    }
    return bytes.toByteArray();
  }
}
